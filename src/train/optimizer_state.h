// Lets every rank go on with the optimizer state of one of them, as after one has loaded a checkpoint.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/train/distributed_optimizer.h>
#include <torch/torch.h>

namespace fedrun {

// Collective. Gives every rank the root's options (learning rate, betas, …), of each parameter group and the defaults,
// and its state of each parameter (momentum, steps, …), with values and types: state that a rank lacks is made, state
// that the root lacks is dropped. The parameters themselves stay; broadcast_parameters is for them.
//
// Works for every optimizer of torch::optim and for your own if it overrides save() and load(); otherwise every rank
// throws UsageError. Optimizers whose type, parameter groups or parameters differ are a MismatchError on every rank.
// Where load() throws on a rank, every rank throws UsageError with its words.
void broadcast_optimizer_state(Communicator& group, torch::optim::Optimizer& optimizer,
                               const BroadcastOptions& options = {});

// The same for the optimizer inside. Throws UsageError where each rank has the state of its own part: that of a sharded
// optimizer that has stepped.
void broadcast_optimizer_state(Communicator& group, DistributedOptimizer& optimizer,
                               const BroadcastOptions& options = {});

}  // namespace fedrun
