// Parts of what an optimizer remembers about a parameter, for optimizers that treat each element alone.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <memory>

namespace fedrun {

// Is it an optimizer whose state can be sliced? SGD, Adam, AdamW and RMSprop are.
bool slices_state_of(const torch::optim::Optimizer& optimizer);

// What belongs to `elements` elements of the parameter from `first` on, as they lie in memory.
std::unique_ptr<torch::optim::OptimizerParamState> slice_state(const torch::optim::OptimizerParamState& state,
                                                               const torch::Tensor& parameter, std::size_t first,
                                                               std::size_t elements);

}  // namespace fedrun
