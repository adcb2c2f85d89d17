// A torch::nn::Sequential that can be part of another one, which Torch's own cannot: its forward is a template.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>

namespace fedrun::models {

// Models that are chains through and through let convert_sync_batch_norm replace their layers.
class ChainImpl : public torch::nn::SequentialImpl {
 public:
  using SequentialImpl::SequentialImpl;

  torch::Tensor forward(const torch::Tensor& input) { return SequentialImpl::forward(input); }

  std::shared_ptr<Module> clone(const std::optional<torch::Device>& device = std::nullopt) const override;

 protected:
  // What derived classes need for a clone() of their own kind.
  void append_clones(const ChainImpl& other, const std::optional<torch::Device>& device);
};

TORCH_MODULE(Chain);

}  // namespace fedrun::models
