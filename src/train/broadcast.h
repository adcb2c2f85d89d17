// Gives every rank the same starting point.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

namespace fedrun {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// Collective. Copies the tensors of the root into those of all other ranks, whatever their strides; small ones travel
// together. Throws MismatchError when the ranks' tensors differ in name, shape or type.
void broadcast_tensors(Communicator& group, const NamedTensors& tensors, const BroadcastOptions& options = {});

// The same for a module's parameters and buffers, so that BatchNorm's running statistics start equal as well.
void broadcast_parameters(Communicator& group, const torch::nn::Module& module, const BroadcastOptions& options = {});

}  // namespace fedrun
