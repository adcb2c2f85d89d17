#include <fedrun/core/error.h>
#include <fedrun/train/batch_statistics.h>
#include <fedrun/train/sync_batch_norm.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fedrun {
namespace {

bool is_half(torch::Dtype type) { return type == torch::kFloat16 || type == torch::kBFloat16; }

}  // namespace

SyncBatchNormImpl::SyncBatchNormImpl(const torch::nn::BatchNormOptions& layer_options) : options(layer_options) {
  if (options.num_features() < 1) {
    throw UsageError(fmt::format("SyncBatchNorm: {} channels: give 1 or more", options.num_features()));
  }
  SyncBatchNormImpl::reset();
}

SyncBatchNormImpl::SyncBatchNormImpl(const torch::nn::BatchNormOptions& layer_options, Communicator& group)
    : SyncBatchNormImpl(layer_options) {
  set_group(group);
}

SyncBatchNormImpl::SyncBatchNormImpl(const torch::nn::BatchNormOptions& layer_options, const BatchNormTensors& tensors)
    : options(layer_options) {
  adopt(tensors);
}

void SyncBatchNormImpl::set_group(Communicator& group, const std::string& name) {
  group_ = &group;
  name_ = name;
}

void SyncBatchNormImpl::reset() {
  BatchNormTensors tensors;
  if (options.affine()) {
    tensors.weight = torch::ones(options.num_features(), torch::requires_grad());
    tensors.bias = torch::zeros(options.num_features(), torch::requires_grad());
  }
  if (options.track_running_stats()) {
    tensors.running_mean = torch::zeros(options.num_features());
    tensors.running_var = torch::ones(options.num_features());
    tensors.num_batches_tracked = torch::tensor(0, torch::kInt64);
  }
  adopt(tensors);
}

void SyncBatchNormImpl::adopt(const BatchNormTensors& tensors) {
  const auto requires_grad = [](const torch::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); };
  weight = register_parameter("weight", tensors.weight, requires_grad(tensors.weight));
  bias = register_parameter("bias", tensors.bias, requires_grad(tensors.bias));
  running_mean = register_buffer("running_mean", tensors.running_mean);
  running_var = register_buffer("running_var", tensors.running_var);
  num_batches_tracked = register_buffer("num_batches_tracked", tensors.num_batches_tracked);
}

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  const auto momentum = options.momentum();
  stream << fmt::format("fedrun::SyncBatchNorm({}, eps={}, momentum={}, affine={}, track_running_stats={}, {})",
                        options.num_features(), options.eps(), momentum ? fmt::format("{}", *momentum) : "none",
                        options.affine(), options.track_running_stats(),
                        group_ ? fmt::format("over {} ranks", group_->size()) : "without a group");
}

torch::Tensor SyncBatchNormImpl::forward(const torch::Tensor& input) {
  check_input(input);
  return is_training() && group_ && group_->size() > 1 ? normalise_together(input) : normalise_alone(input);
}

void SyncBatchNormImpl::check_input(const torch::Tensor& input) const {
  if (input.dim() < 2 || input.size(1) != options.num_features()) {
    throw UsageError(fmt::format("{}: the input has the shape [{}], but (N, {}, …) is needed", name_,
                                 fmt::join(input.sizes(), ", "), options.num_features()));
  }
  const torch::Tensor& own = weight.defined() ? weight : running_mean;
  const torch::Dtype type = own.defined() ? own.scalar_type() : input.scalar_type();
  const bool is_known = type == torch::kFloat32 || type == torch::kFloat64;
  if (is_known && (input.scalar_type() == type || is_half(input.scalar_type()))) return;
  throw UsageError(fmt::format(
      "{}: the input is {} and the layer {}: keep the layer in float32 or float64, and the input in that or in 16 bits",
      name_, torch::toString(input.scalar_type()), torch::toString(type)));
}

double SyncBatchNormImpl::count_batch() {
  if (!options.track_running_stats()) return 0;
  num_batches_tracked += 1;
  return options.momentum().value_or(1 / num_batches_tracked.item<double>());
}

torch::Tensor SyncBatchNormImpl::normalise_alone(const torch::Tensor& input) {
  const bool uses_batch = is_training() || !options.track_running_stats();
  const int64_t count = input.numel() / options.num_features();
  if (uses_batch && count < 2) {
    throw UsageError(fmt::format("{}: {} value(s) in each channel have no variance: give 2 or more", name_, count));
  }
  const double momentum = is_training() ? count_batch() : 0;
  return torch::batch_norm(input, weight, bias, running_mean, running_var, uses_batch, momentum, options.eps(),
                           at::globalContext().userEnabledCuDNN());
}

torch::Tensor SyncBatchNormImpl::normalise_together(const torch::Tensor& input) {
  if (is_half(input.scalar_type())) {
    const torch::Dtype type = weight.defined() ? weight.scalar_type() : torch::kFloat32;
    return normalise_together(input.to(type)).to(input.scalar_type());
  }
  const BatchStatistics statistics = gather_batch_statistics(*group_, input, name_);
  if (statistics.count < 2) {
    throw UsageError(
        fmt::format("{}: all ranks together bring {} value(s) in each channel, which have no variance: give 2 or more",
                    name_, statistics.count));
  }
  if (options.track_running_stats()) {
    const torch::NoGradGuard no_grad;
    const double share = count_batch();
    const auto type = running_mean.scalar_type();
    const torch::Tensor unbiased = statistics.variance * (statistics.count / (statistics.count - 1));
    running_mean.mul_(1 - share).add_(statistics.mean.to(type), share);
    running_var.mul_(1 - share).add_(unbiased.to(type), share);
  }
  return normalise(input, weight, bias,
                   {.group = *group_, .statistics = statistics, .eps = options.eps(), .name = name_});
}

}  // namespace fedrun
