// Turns a model that was written with torch::nn::BatchNorm into one that normalises over all ranks.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <torch/torch.h>

namespace fedrun {

// Replaces every BatchNorm1d, 2d and 3d in the Sequentials below the module by a SyncBatchNorm of this group, and gives
// the group to every SyncBatchNorm that is there already. Parameters, buffers and their names, the order of children
// and training or evaluation stay as they are: the new layers hold the same tensors, so optimizers made before remain
// valid. Communicates nothing, but every rank does it. The group must outlive the model.
//
// A class with a member `torch::nn::BatchNorm2d bn_` calls that type's forward, whatever is registered in its place.
// Such layers cannot be replaced: UsageError lists them all, and nothing is changed. Declare them as
// `fedrun::SyncBatchNorm bn_`, which is a plain BatchNorm until it gets a group, or put them into a Sequential.
void convert_sync_batch_norm(torch::nn::Module& module, Communicator& group);

}  // namespace fedrun
