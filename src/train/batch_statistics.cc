#include <fedrun/core/error.h>
#include <fedrun/train/batch_statistics.h>
#include <fedrun/train/tensor_collectives.h>
#include <fmt/format.h>

#include <optional>
#include <span>

namespace fedrun {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Named, so that its place among the optimizer's reductions does not matter: a rank without gradients starts those
// later.
void add_ranks(Communicator& group, const torch::Tensor& sums, const std::string& name) {
  try {
    allreduce_(group, sums, {.op = ReduceOp::sum, .name = name});
  } catch (const MismatchError& error) {
    throw MismatchError(
        fmt::format("SyncBatchNorm: the ranks normalise different layers, or their layers have different numbers of "
                    "channels; {}",
                    error.what()));
  }
}

// On the host, which would else have to wait for the GPU to read it there.
double add_counts(Communicator& group, double count, const std::string& name) {
  group.allreduce(std::span(&count, 1), {.op = ReduceOp::sum, .name = name + ".count"});
  return count;
}

// As the input's other dimensions are broadcast over channels: (1, channels, 1, …).
torch::Tensor by_channel(const torch::Tensor& values, const torch::Tensor& input) {
  std::vector<int64_t> sizes(static_cast<std::size_t>(input.dim()), 1);
  sizes[1] = values.numel();
  return values.to(input.scalar_type()).view(sizes);
}

struct LocalSums {
  torch::Tensor gradient;             // Σ dy
  torch::Tensor gradient_normalised;  // Σ dy · (x - mean) / √(variance + eps)
};

// Autograd's context keeps only Torch's own kinds of values; this is one that may hold anything.
struct Kept : torch::CustomClassHolder {
  explicit Kept(SharedNormalisation normalisation) : shared(std::move(normalisation)) {}

  // Torch's gradients of a BatchNorm that evaluates, whose statistics are constant, are the sums that are needed.
  LocalSums sum_gradients(const torch::Tensor& gradient, const torch::Tensor& input) const {
    const auto options = input.options().dtype(torch::kFloat64);
    if (input.numel() == 0) return {torch::zeros(input.size(1), options), torch::zeros(input.size(1), options)};
    const auto [unused, normalised, sum] = at::native_batch_norm_backward(
        gradient, input, {}, shared.statistics.mean.to(input.scalar_type()),
        shared.statistics.variance.to(input.scalar_type()), {}, {}, /*train=*/false, shared.eps, {false, true, true});
    return {sum.to(torch::kFloat64), normalised.to(torch::kFloat64)};
  }

  // With a hat for the normalised x, weight / √(variance + eps) · (dy - mean of dy - x̂ · mean of dy x̂), where the means
  // are over all ranks; written as scale · dy + slope · x + rest to pass through memory twice.
  torch::Tensor gradient_of_input(const torch::Tensor& gradient, const torch::Tensor& input,
                                  const torch::Tensor& weight, const LocalSums& sums) const {
    const int64_t channels = input.size(1);
    const torch::Tensor all = torch::cat({sums.gradient, sums.gradient_normalised});
    add_ranks(shared.group, all, shared.name + ".backward");
    const torch::Tensor mean_gradient = all.slice(0, 0, channels) / shared.statistics.count;
    const torch::Tensor mean_normalised = all.slice(0, channels) / shared.statistics.count;
    const torch::Tensor inverse_deviation = (shared.statistics.variance + shared.eps).rsqrt();
    const torch::Tensor scale = weight.numel() > 0 ? inverse_deviation * weight : inverse_deviation;
    const torch::Tensor slope = -scale * inverse_deviation * mean_normalised;
    const torch::Tensor rest = -scale * mean_gradient - slope * shared.statistics.mean;
    return torch::addcmul(by_channel(rest, input), input, by_channel(slope, input))
        .addcmul_(gradient, by_channel(scale, input));
  }

  SharedNormalisation shared;
};

// Functions of autograd cannot have undefined arguments; an empty tensor stands for none.
std::optional<torch::Tensor> unless_empty(const torch::Tensor& tensor) {
  return tensor.numel() > 0 ? std::optional(tensor) : std::nullopt;
}

struct Normalise : torch::autograd::Function<Normalise> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input, const torch::Tensor& weight,
                               const torch::Tensor& bias, const SharedNormalisation& shared) {
    context->save_for_backward({input, weight});
    context->saved_data["kept"] = torch::IValue::make_capsule(c10::make_intrusive<Kept>(shared));
    if (input.numel() == 0) return torch::empty_like(input);
    return torch::batch_norm(input, unless_empty(weight), unless_empty(bias),
                             shared.statistics.mean.to(input.scalar_type()),
                             shared.statistics.variance.to(input.scalar_type()), /*training=*/false, /*momentum=*/0,
                             shared.eps, /*cudnn_enabled=*/false);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (torch::GradMode::is_enabled()) {
      throw UsageError("SyncBatchNorm has no second derivative: call backward() or grad() without create_graph");
    }
    const auto capsule = context->saved_data["kept"].toCapsule();
    const auto& kept = static_cast<const Kept&>(*capsule);
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor& input = saved[0];
    const torch::Tensor& weight = saved[1];
    const torch::Tensor gradient = gradients[0].contiguous(input.suggest_memory_format());

    const LocalSums sums = kept.sum_gradients(gradient, input);
    variable_list results(4);
    if (context->needs_input_grad(0)) results[0] = kept.gradient_of_input(gradient, input, weight, sums);
    if (weight.numel() > 0) {
      results[1] = sums.gradient_normalised.to(weight.scalar_type());
      results[2] = sums.gradient.to(weight.scalar_type());
    }
    return results;
  }
};

}  // namespace

// The ranks add Σ x and Σ x² in f64. That loses nothing which the rounding of f32 values to 24 bits has left: where
// their mean is m deviations away from 0, the sums know the variance to about m² · 10⁻¹⁶ of itself, and the values
// themselves are only known to m · 10⁻⁷ deviations. Inside a rank the deviations are summed, not the squares.
BatchStatistics gather_batch_statistics(Communicator& group, const torch::Tensor& input, const std::string& name) {
  const torch::NoGradGuard no_grad;
  const int64_t channels = input.size(1);
  const auto count = static_cast<double>(input.numel() / channels);
  const torch::Tensor sums = torch::zeros(2 * channels + 1, input.options().dtype(torch::kFloat64));
  const torch::Tensor sum = sums.slice(0, 0, channels);
  const torch::Tensor square_sum = sums.slice(0, channels, 2 * channels);
  if (input.numel() > 0) {
    const auto [mean, variance] = at::batch_norm_update_stats(input, {}, {}, 0);
    sums[2 * channels].fill_(count);
    sum.copy_(mean).mul_(count);
    square_sum.copy_(mean).square_().add_(variance).mul_(count);
  }
  add_ranks(group, sums, name + ".forward");
  const double total = input.device().is_cpu() ? sums[2 * channels].item<double>() : add_counts(group, count, name);
  const torch::Tensor mean = sum / total;
  return {mean, (square_sum / total - mean.square()).clamp_min_(0), total};
}

torch::Tensor normalise(const torch::Tensor& input, const torch::Tensor& weight, const torch::Tensor& bias,
                        const SharedNormalisation& shared) {
  const torch::Tensor none = torch::empty({0}, input.options());
  return Normalise::apply(input, weight.defined() ? weight : none, bias.defined() ? bias : none, shared);
}

}  // namespace fedrun
