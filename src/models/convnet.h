// The small convolutional network for 28×28 grey images that the MNIST examples train.
#pragma once

#include <torch/torch.h>

namespace fedrun::models {

// Two blocks of convolution (5×5, padding 2), BatchNorm, ReLU and 2×2 max-pooling, then one linear layer: 29,034
// parameters for ten classes.
class ConvNetImpl : public torch::nn::Module {
 public:
  explicit ConvNetImpl(int64_t classes = 10);

  // (N, 1, 28, 28) → (N, classes), not normalised.
  torch::Tensor forward(const torch::Tensor& images);

 private:
  torch::nn::Sequential layer1_;
  torch::nn::Sequential layer2_;
  torch::nn::Linear classifier_;
};

TORCH_MODULE(ConvNet);

}  // namespace fedrun::models
