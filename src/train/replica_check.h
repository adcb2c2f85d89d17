// Notices when the replicas of a model drift apart, which no loss curve shows until it is too late.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/train/broadcast.h>
#include <torch/torch.h>

#include <cstdint>

namespace fedrun {

struct ReplicaCheckOptions {
  std::int64_t every = 100;  // steps between two comparisons
  bool buffers = false;      // compare a module's buffers as well; BatchNorm's are usually each rank's own
};

// Compares hashes of all elements, bit by bit: -0 differs from 0, and NaN equals the same NaN. A comparison reads the
// tensors once and costs one small allgather. Construction is collective and compares names, shapes and types. Used by
// one thread, on every rank alike.
class ReplicaCheck {
 public:
  ReplicaCheck(Communicator& group, NamedTensors tensors, const ReplicaCheckOptions& options = {});
  ReplicaCheck(Communicator& group, const torch::nn::Module& module, const ReplicaCheckOptions& options = {});

  // Call it after each step of the optimizer. Collective at every `every`-th call; where the replicas differ, every
  // rank throws MismatchError that names the step, the first tensor that differs, the ranks that differ from the
  // others, and two values.
  void step();

  // Collective: compares now.
  void compare();

 private:
  [[noreturn]] void throw_divergence(const std::vector<std::int64_t>& hashes);

  Communicator& group_;
  NamedTensors tensors_;
  std::int64_t every_;
  std::int64_t steps_ = 0;
};

}  // namespace fedrun
