#include <fedrun/core/error.h>
#include <fedrun/train/lars.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string_view>

namespace fedrun {

using torch::optim::OptimizerParamGroup;

namespace {

void check(const LarsOptions& options) {
  const auto require = [](bool holds, std::string_view name, double value, std::string_view range) {
    if (!holds) throw UsageError(fmt::format("Lars: {} is {}: give {}", name, value, range));
  };
  require(options.lr() >= 0, "lr", options.lr(), "0 or more");
  require(options.momentum() >= 0, "momentum", options.momentum(), "0 or more, and less than 1");
  require(options.momentum() < 1, "momentum", options.momentum(), "0 or more, and less than 1");
  require(options.weight_decay() >= 0, "weight_decay", options.weight_decay(), "0 or more");
  require(options.trust_coefficient() > 0, "trust_coefficient", options.trust_coefficient(), "more than 0");
  require(options.eps() >= 0, "eps", options.eps(), "0 or more");
  require(!options.nesterov() || options.momentum() > 0, "momentum", options.momentum(), "more than 0 with nesterov");
}

// In parts, whose squares are summed in f64: over 16 M elements, Torch's norm in f32 is wrong by 6.5e-4 (3.5 ms), and
// its norm in f64 first copies all of them (100 ms).
double norm_of(const torch::Tensor& tensor) {
  constexpr int64_t part_elements = 65'536;
  double square_sum = 0;
  for (const torch::Tensor& part : tensor.reshape(-1).split(part_elements)) {
    const double norm = part.norm().item<double>();
    square_sum += norm * norm;
  }
  return std::sqrt(square_sum);
}

double rate_of(const torch::Tensor& parameter, const torch::Tensor& gradient, const LarsOptions& options) {
  const double weight_norm = norm_of(parameter);
  const double gradient_norm = norm_of(gradient);
  if (weight_norm == 0 || gradient_norm == 0) return 1;
  return options.trust_coefficient() * weight_norm /
         (gradient_norm + options.weight_decay() * weight_norm + options.eps());
}

}  // namespace

bool operator==(const LarsOptions& lhs, const LarsOptions& rhs) {
  return lhs.lr() == rhs.lr() && lhs.momentum() == rhs.momentum() && lhs.weight_decay() == rhs.weight_decay() &&
         lhs.trust_coefficient() == rhs.trust_coefficient() && lhs.eps() == rhs.eps() &&
         lhs.nesterov() == rhs.nesterov() && lhs.exclude_one_dimensional() == rhs.exclude_one_dimensional();
}

void LarsOptions::serialize(torch::serialize::OutputArchive& archive) const {
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(lr);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(momentum);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(weight_decay);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(trust_coefficient);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(eps);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(nesterov);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(exclude_one_dimensional);
}

void LarsOptions::serialize(torch::serialize::InputArchive& archive) {
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, lr);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, momentum);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, weight_decay);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, trust_coefficient);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, eps);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(bool, nesterov);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(bool, exclude_one_dimensional);
}

void LarsParamState::serialize(torch::serialize::OutputArchive& archive) const {
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(momentum_buffer);
}

void LarsParamState::serialize(torch::serialize::InputArchive& archive) {
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(torch::Tensor, momentum_buffer);
}

Lars::Lars(const std::vector<OptimizerParamGroup>& param_groups, const LarsOptions& defaults)
    : Optimizer(std::vector<OptimizerParamGroup>(), std::make_unique<LarsOptions>(defaults)) {
  check(defaults);
  for (const OptimizerParamGroup& group : param_groups) add_param_group(group);
}

void Lars::add_param_group(const OptimizerParamGroup& group) {
  if (group.has_options()) {
    const auto* options = dynamic_cast<const LarsOptions*>(&group.options());
    if (options == nullptr) {
      throw UsageError("Lars: a parameter group has the options of another optimizer: give LarsOptions");
    }
    check(*options);
  }
  Optimizer::add_param_group(group);
  if (group.has_options()) param_groups_.back().set_options(group.options().clone());
}

torch::Tensor Lars::step(LossClosure closure) {
  torch::Tensor loss;
  if (closure) {
    const torch::AutoGradMode enable_grad(true);
    loss = closure();
  }
  const torch::NoGradGuard no_grad;
  for (auto& group : param_groups_) {
    const auto& options = static_cast<const LarsOptions&>(group.options());
    for (torch::Tensor& parameter : group.params()) {
      if (parameter.grad().defined()) update(parameter, options);
    }
  }
  return loss;
}

// The gradient itself stays as it is: it may lie in memory that the ranks share.
void Lars::update(torch::Tensor& parameter, const LarsOptions& options) {
  const torch::Tensor& gradient = parameter.grad();
  if (gradient.is_sparse()) throw UsageError("Lars: a gradient is sparse: use layers with sparse(false)");
  const bool is_plain = options.exclude_one_dimensional() && parameter.dim() <= 1;
  const double rate = is_plain ? 1 : rate_of(parameter, gradient, options);
  const double decay = is_plain ? 0 : options.weight_decay();
  const torch::Tensor direction = decay == 0 ? gradient : gradient.add(parameter, decay);
  if (options.momentum() == 0) {
    parameter.add_(direction, -options.lr() * rate);
    return;
  }
  auto& state = state_[parameter.unsafeGetTensorImpl()];
  if (!state) {
    auto fresh = std::make_unique<LarsParamState>();
    fresh->momentum_buffer(torch::zeros_like(parameter));
    state = std::move(fresh);
  }
  const torch::Tensor& momentum = static_cast<LarsParamState&>(*state).momentum_buffer();
  momentum.mul_(options.momentum()).add_(direction, rate);
  if (options.nesterov()) {
    parameter.add_(direction, -options.lr() * rate).add_(momentum, -options.lr() * options.momentum());
  } else {
    parameter.add_(momentum, -options.lr());
  }
}

void Lars::save(torch::serialize::OutputArchive& archive) const {
  torch::optim::serialize<LarsParamState, LarsOptions>(archive, *this);
}

void Lars::load(torch::serialize::InputArchive& archive) {
  torch::optim::serialize<LarsParamState, LarsOptions>(archive, *this);
}

}  // namespace fedrun
