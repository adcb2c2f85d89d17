#include <fedrun/core/error.h>
#include <fedrun/train/agreement.h>
#include <fedrun/train/distributed_optimizer.h>
#include <fedrun/train/tensor_buffer.h>
#include <fmt/format.h>

#include <unordered_map>

namespace fedrun {
namespace {

// The optimizer's trainable parameters under their names, in the order of named_parameters.
std::vector<NamedParameter> name_parameters(const torch::optim::Optimizer& optimizer,
                                            const torch::OrderedDict<std::string, torch::Tensor>& named_parameters) {
  std::unordered_map<const void*, std::string> names;
  for (const auto& item : named_parameters) {
    const auto [known, is_new] = names.emplace(item.value().unsafeGetTensorImpl(), item.key());
    if (!is_new) {
      throw UsageError(
          fmt::format("named_parameters lists one parameter twice, as '{}' and as '{}'", known->second, item.key()));
    }
  }
  std::unordered_map<const void*, bool> wanted;
  for (std::size_t group = 0; group < optimizer.param_groups().size(); ++group) {
    const auto& parameters = optimizer.param_groups()[group].params();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!names.contains(parameters[i].unsafeGetTensorImpl())) {
        throw UsageError(
            fmt::format("named_parameters has no name for parameter {} of the optimizer's group {}, {}: pass the "
                        "named_parameters() of every module that the optimizer trains",
                        i, group, describe_tensor("a", parameters[i])));
      }
      if (parameters[i].requires_grad()) wanted[parameters[i].unsafeGetTensorImpl()] = true;
    }
  }
  std::vector<NamedParameter> result;
  for (const auto& item : named_parameters) {
    if (wanted.contains(item.value().unsafeGetTensorImpl())) result.push_back({item.key(), item.value()});
  }
  return result;
}

void check_options(const DistributedOptimizerOptions& options) {
  if (options.op != ReduceOp::average && options.op != ReduceOp::sum) {
    throw UsageError(
        fmt::format("DistributedOptimizer cannot reduce gradients by {}: use average or sum", to_string(options.op)));
  }
  if (options.buckets.first_bytes == 0 || options.buckets.bytes == 0) {
    throw UsageError("DistributedOptimizer: bucket sizes must be at least 1 byte");
  }
}

}  // namespace

DistributedOptimizer::DistributedOptimizer(Communicator& group, std::unique_ptr<torch::optim::Optimizer> optimizer,
                                           const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
                                           const DistributedOptimizerOptions& options)
    : optimizer_(std::move(optimizer)) {
  check_options(options);
  if (optimizer_ == nullptr) throw UsageError("DistributedOptimizer needs an optimizer to wrap, not a null pointer");
  std::vector<NamedParameter> parameters = name_parameters(*optimizer_, named_parameters);
  std::vector<std::string> plan = {fmt::format("op {}, buckets of {} and {} bytes", to_string(options.op),
                                               options.buckets.first_bytes, options.buckets.bytes)};
  for (const auto& [name, tensor] : parameters) plan.push_back(describe_tensor(name, tensor));
  check_agreement(group, "DistributedOptimizer: options and parameters", plan);
  reducer_ = std::make_unique<GradientReducer>(group, std::move(parameters), options.op, options.buckets);
}

void DistributedOptimizer::zero_grad(bool set_to_none) {
  if (reducer_->window_open()) {
    throw UsageError(
        "zero_grad() was called after backward() and before step(), while gradients are being reduced: call it "
        "before backward() or after step()");
  }
  optimizer_->zero_grad(set_to_none);
}

void DistributedOptimizer::synchronize() {
  reducer_->synchronize();
  reduced_ = true;
}

torch::Tensor DistributedOptimizer::step(const torch::optim::Optimizer::LossClosure& closure) {
  torch::Tensor loss;
  if (closure) {
    // Optimizers such as LBFGS run backward several times in one step; each of them is reduced.
    loss = optimizer_->step([&] {
      const torch::AutoGradMode with_gradients(true);
      torch::Tensor closure_loss = closure();
      reducer_->synchronize();
      return closure_loss;
    });
  } else {
    if (!reduced_ || reducer_->window_open()) reducer_->synchronize();
    loss = optimizer_->step();
  }
  reduced_ = false;
  return loss;
}

}  // namespace fedrun
