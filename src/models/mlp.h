// A plain stack of linear layers: many parameters, little arithmetic, so that communication is what training costs.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace fedrun::models {

struct MlpOptions {
  std::vector<std::int64_t> sizes = {784, 4096, 4096, 10};  // inputs, hidden layers, outputs: 20,037,642 parameters
};

// Linear layers with ReLU between them.
class MlpImpl : public torch::nn::Module {
 public:
  explicit MlpImpl(const MlpOptions& options = {});

  // (N, …) with sizes.front() elements a sample → (N, sizes.back()), not normalised.
  torch::Tensor forward(const torch::Tensor& batch);

 private:
  torch::nn::Sequential layers_;
};

TORCH_MODULE(Mlp);

}  // namespace fedrun::models
