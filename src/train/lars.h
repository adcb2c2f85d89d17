// LARS: SGD whose rate is adapted to each layer, so that training with very large batches converges.
#pragma once

#include <torch/torch.h>

#include <utility>
#include <vector>

namespace fedrun {

struct LarsOptions : public torch::optim::OptimizerCloneableOptions<LarsOptions> {
  LarsOptions(double lr) : lr_(lr) {}  // implicit, as with Torch's: Lars(parameters, 0.1)

  TORCH_ARG(double, lr);
  TORCH_ARG(double, momentum) = 0.9;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, trust_coefficient) = 0.001;
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(bool, nesterov) = false;
  // Biases and the parameters of normalisation get neither weight decay nor a rate of their own.
  TORCH_ARG(bool, exclude_one_dimensional) = true;

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
  friend bool operator==(const LarsOptions& lhs, const LarsOptions& rhs);
  double get_lr() const override { return lr(); }
  void set_lr(double new_lr) override { lr(new_lr); }
};

struct LarsParamState : public torch::optim::OptimizerCloneableParamState<LarsParamState> {
  TORCH_ARG(torch::Tensor, momentum_buffer);

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

// For a parameter w with the gradient g:
//
//   rate     = trust_coefficient · |w| / (|g| + weight_decay · |w| + eps), or 1 where |w| or |g| is 0
//   momentum = momentum coefficient · momentum + rate · (g + weight_decay · w)
//   w        = w - lr · momentum
//
// The learning rate is outside the momentum, as in torch::optim::SGD, so that schedules act at once. Used like
// torch::optim::SGD, inside a DistributedOptimizer or alone; a parameter group with options of its own takes all of its
// options from there. Throws UsageError for options that make no sense.
class Lars : public torch::optim::Optimizer {
 public:
  Lars(const std::vector<torch::optim::OptimizerParamGroup>& param_groups, const LarsOptions& defaults);
  Lars(std::vector<torch::Tensor> parameters, const LarsOptions& defaults)
      : Lars({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults) {}

  // Instead of Torch's, which knows how to keep the options of its own optimizers only.
  void add_param_group(const torch::optim::OptimizerParamGroup& group);

  torch::Tensor step(LossClosure closure = nullptr) override;

  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  void update(torch::Tensor& parameter, const LarsOptions& options);
};

}  // namespace fedrun
