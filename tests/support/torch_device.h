// Lets one test run with tensors on the CPU and, over the stand-ins, on a GPU: it makes its tensors with these.
#pragma once

#include <torch/torch.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "support/rank_test.h"

namespace fedrun::test {

// Where this program's tensors belong: on this rank's GPU, if the run uses one.
inline torch::Device device() {
  const std::optional<int> gpu = process().gpu_in_use();
  return gpu ? torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(*gpu)) : torch::Device(torch::kCPU);
}
inline bool on_gpu() { return !device().is_cpu(); }
// How errors say it, behind a tensor's type and shape.
inline std::string place() { return on_gpu() ? " on a GPU" : ""; }

inline torch::Tensor here(const torch::Tensor& tensor) {
  if (tensor.device() == device()) return tensor;
  return tensor.detach().to(device()).requires_grad_(tensor.requires_grad());
}
template <typename Holder>
Holder here(Holder module) requires(!std::is_convertible_v<Holder, torch::Tensor>) {
  module->to(device());
  return module;
}

// Torch's functions of the same names.
template <typename... Arguments>
torch::Tensor ones(torch::IntArrayRef sizes, Arguments&&... arguments) {
  return here(torch::ones(sizes, std::forward<Arguments>(arguments)...));
}
template <typename... Arguments>
torch::Tensor zeros(torch::IntArrayRef sizes, Arguments&&... arguments) {
  return here(torch::zeros(sizes, std::forward<Arguments>(arguments)...));
}
template <typename... Arguments>
torch::Tensor empty(torch::IntArrayRef sizes, Arguments&&... arguments) {
  return here(torch::empty(sizes, std::forward<Arguments>(arguments)...));
}
template <typename... Arguments>
torch::Tensor full(torch::IntArrayRef sizes, Arguments&&... arguments) {
  return here(torch::full(sizes, std::forward<Arguments>(arguments)...));
}
template <typename... Arguments>
torch::Tensor randn(torch::IntArrayRef sizes, Arguments&&... arguments) {
  return here(torch::randn(sizes, std::forward<Arguments>(arguments)...));
}
template <typename... Arguments>
torch::Tensor arange(Arguments&&... arguments) {
  return here(torch::arange(std::forward<Arguments>(arguments)...));
}
inline torch::Tensor tensor(const torch::detail::TensorDataContainer& values,
                            const torch::TensorOptions& options = {}) {
  return here(torch::tensor(values, options));
}

}  // namespace fedrun::test
