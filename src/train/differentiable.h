// Gives results of collectives a place in autograd's graph.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <string>
#include <string_view>

namespace fedrun {

// Turns the gradient of an output into that of the input. Where it uses differentiable functions, so is it.
using Gradient = std::function<torch::Tensor(const torch::Tensor&)>;

// The output, which was computed from the input outside autograd; backward calls `gradient`, if autograd is recording.
torch::Tensor differentiable(const torch::Tensor& input, const torch::Tensor& output, const Gradient& gradient);

// Would autograd record what is done with this tensor?
bool is_recorded(const torch::Tensor& tensor);

// The name for the operation that backward needs; none stays none.
std::string gradient_name(std::string_view name);

}  // namespace fedrun
