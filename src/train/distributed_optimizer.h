// Wraps any torch::optim optimizer so that every rank steps with the gradients of all ranks.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/train/gradient_reducer.h>
#include <torch/torch.h>

#include <memory>
#include <string>

namespace fedrun {

struct DistributedOptimizerOptions {
  ReduceOp op = ReduceOp::average;  // average or sum
  BucketSizes buckets{};
};

// Gradients are reduced while backward() runs; step() waits for them and steps. Construction is collective and compares
// the parameters of all ranks. Used by one thread, the one that calls backward().
class DistributedOptimizer {
 public:
  // named_parameters must name every parameter of the optimizer once; it may hold others, such as frozen ones.
  DistributedOptimizer(Communicator& group, std::unique_ptr<torch::optim::Optimizer> optimizer,
                       const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
                       const DistributedOptimizerOptions& options = {});

  // Throws UsageError between backward() and step(): the gradients are being reduced.
  void zero_grad(bool set_to_none = true);

  // Waits for the reduced gradients without stepping, so that they can be clipped or looked at; step() then only steps.
  void synchronize();

  torch::Tensor step(const torch::optim::Optimizer::LossClosure& closure = nullptr);

  // The optimizer inside, for learning rate schedules and for saving its state.
  torch::optim::Optimizer& inner() { return *optimizer_; }

 private:
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<GradientReducer> reducer_;  // its hooks hold its address
  bool reduced_ = false;                      // synchronize() was called and no gradient has arrived since
};

}  // namespace fedrun
