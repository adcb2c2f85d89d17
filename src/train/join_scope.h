// Training on ranks whose data runs out at different times.
#pragma once

#include <fedrun/train/distributed_optimizer.h>
#include <torch/torch.h>

#include <functional>

namespace fedrun {

// Collective. Runs the loop, in which this rank takes as many steps as it has data for. Afterwards it answers the
// reductions of those that still have some, counting for nothing in them, until all have come to their end. Then the
// rank that went on longest gives its parameters, buffers and optimizer state to all; that rank is returned.
//
// Inside the loop only reductions may be called; while a rank waits here, anything else is an error on the others.
// Throws UsageError for a sharded optimizer: a rank that waits would not step its part.
int join_scope(DistributedOptimizer& optimizer, torch::nn::Module& model, const std::function<void()>& loop);

}  // namespace fedrun
