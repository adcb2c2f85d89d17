// Residual networks of 18, 50 and 56 layers, for images of CIFAR's and of ImageNet's size.
#pragma once

#include <fedrun/models/chain.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace fedrun::models {

// How the image enters: by a 3×3 convolution for small images such as CIFAR's, or by a 7×7 convolution and a
// max-pooling of stride 2 each, which leave a quarter of the width and height.
enum class Stem { cifar, imagenet };

// group: GroupNorm with two groups, for federated training, where averages of other clients' batches do harm.
enum class Norm { batch, group };

struct ResNetOptions {
  // 18: basic blocks; 50: bottleneck blocks with the stride in the 3×3 convolution; 56: three stages of six bottleneck
  // blocks with a quarter of the width, the form in which FedML trains it on CIFAR.
  int depth = 18;
  Stem stem = Stem::cifar;
  Norm norm = Norm::batch;
  std::int64_t classes = 10;
};

// (N, 3, height, width) → (N, classes), not normalised. Convolutions start with Kaiming's normal distribution by
// fan-out, norms with 1 and 0. Parameters and buffers have the names that they have in torchvision:
// layer1.0.conv1.weight, ….
class ResNetImpl : public ChainImpl {
 public:
  explicit ResNetImpl(const ResNetOptions& options = {});

  std::shared_ptr<Module> clone(const std::optional<torch::Device>& device = std::nullopt) const override;

 private:
  struct Empty {};
  explicit ResNetImpl(Empty) {}
};

TORCH_MODULE(ResNet);

}  // namespace fedrun::models
