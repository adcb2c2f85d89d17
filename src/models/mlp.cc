#include <fedrun/core/error.h>
#include <fedrun/models/mlp.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fedrun::models {
namespace {

torch::nn::Sequential stack(const std::vector<std::int64_t>& sizes) {
  if (sizes.size() < 2 || std::any_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size < 1; })) {
    throw UsageError(fmt::format(
        "Mlp: sizes are [{}]: give the number of inputs, of each hidden layer and of outputs, all 1 or more",
        fmt::join(sizes, ", ")));
  }
  torch::nn::Sequential layers;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    if (i > 0) layers->push_back(torch::nn::ReLU(torch::nn::ReLUOptions().inplace(true)));
    layers->push_back(torch::nn::Linear(sizes[i], sizes[i + 1]));
  }
  return layers;
}

}  // namespace

MlpImpl::MlpImpl(const MlpOptions& options) : layers_(register_module("layers", stack(options.sizes))) {}

torch::Tensor MlpImpl::forward(const torch::Tensor& batch) { return layers_->forward(batch.flatten(1)); }

}  // namespace fedrun::models
