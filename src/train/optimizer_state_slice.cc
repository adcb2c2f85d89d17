#include <fedrun/core/error.h>
#include <fedrun/train/optimizer_state_slice.h>

namespace fedrun {
namespace {

// Cuts tensors of the parameter's shape.
class Slicer {
 public:
  Slicer(const torch::Tensor& parameter, std::size_t first, std::size_t elements)
      : parameter_(parameter),
        first_(static_cast<std::int64_t>(first)),
        elements_(static_cast<std::int64_t>(elements)) {}

  torch::Tensor operator()(const torch::Tensor& whole) const {
    if (!whole.defined()) return {};
    const torch::Tensor as_parameter = torch::empty_strided(parameter_.sizes(), parameter_.strides(), whole.options());
    as_parameter.copy_(whole);
    return as_parameter.as_strided({elements_}, {1}, first_).clone();
  }

 private:
  const torch::Tensor& parameter_;
  std::int64_t first_;
  std::int64_t elements_;
};

// Adam and AdamW remember the same.
template <typename State>
std::unique_ptr<torch::optim::OptimizerParamState> slice_adam(const State& state, const Slicer& slice) {
  auto result = std::make_unique<State>(state);
  result->exp_avg(slice(state.exp_avg()));
  result->exp_avg_sq(slice(state.exp_avg_sq()));
  result->max_exp_avg_sq(slice(state.max_exp_avg_sq()));
  return result;
}

}  // namespace

bool slices_state_of(const torch::optim::Optimizer& optimizer) {
  return dynamic_cast<const torch::optim::SGD*>(&optimizer) != nullptr ||
         dynamic_cast<const torch::optim::Adam*>(&optimizer) != nullptr ||
         dynamic_cast<const torch::optim::AdamW*>(&optimizer) != nullptr ||
         dynamic_cast<const torch::optim::RMSprop*>(&optimizer) != nullptr;
}

std::unique_ptr<torch::optim::OptimizerParamState> slice_state(const torch::optim::OptimizerParamState& state,
                                                               const torch::Tensor& parameter, std::size_t first,
                                                               std::size_t elements) {
  const torch::NoGradGuard no_grad;
  const Slicer slice(parameter, first, elements);
  if (const auto* sgd = dynamic_cast<const torch::optim::SGDParamState*>(&state)) {
    auto result = std::make_unique<torch::optim::SGDParamState>(*sgd);
    result->momentum_buffer(slice(sgd->momentum_buffer()));
    return result;
  }
  if (const auto* adam = dynamic_cast<const torch::optim::AdamParamState*>(&state)) return slice_adam(*adam, slice);
  if (const auto* adamw = dynamic_cast<const torch::optim::AdamWParamState*>(&state)) return slice_adam(*adamw, slice);
  if (const auto* rmsprop = dynamic_cast<const torch::optim::RMSpropParamState*>(&state)) {
    auto result = std::make_unique<torch::optim::RMSpropParamState>(*rmsprop);
    result->square_avg(slice(rmsprop->square_avg()));
    result->momentum_buffer(slice(rmsprop->momentum_buffer()));
    result->grad_avg(slice(rmsprop->grad_avg()));
    return result;
  }
  throw UsageError("sharded: the state of this optimizer cannot be divided among the ranks");
}

}  // namespace fedrun
