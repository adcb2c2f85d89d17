#include <fedrun/models/convnet.h>

namespace fedrun::models {
namespace {

torch::nn::Sequential convolution_block(int64_t channels_in, int64_t channels_out) {
  return torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(channels_in, channels_out, 5).padding(2)),
                               torch::nn::BatchNorm2d(channels_out), torch::nn::ReLU(), torch::nn::MaxPool2d(2));
}

constexpr int64_t features = 7 * 7 * 32;  // two poolings leave 7×7 of 28×28, in 32 channels

}  // namespace

ConvNetImpl::ConvNetImpl(int64_t classes)
    : layer1_(register_module("layer1", convolution_block(1, 16))),
      layer2_(register_module("layer2", convolution_block(16, 32))),
      classifier_(register_module("classifier", torch::nn::Linear(features, classes))) {}

torch::Tensor ConvNetImpl::forward(const torch::Tensor& images) {
  return classifier_->forward(layer2_->forward(layer1_->forward(images)).flatten(1));
}

}  // namespace fedrun::models
