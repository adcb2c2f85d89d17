#include <fedrun/models/federated_models.h>
#include <fmt/format.h>

#include <array>
#include <utility>

namespace fedrun::models {
namespace {

using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Dropout;
using torch::nn::Flatten;
using torch::nn::Linear;
using torch::nn::MaxPool2d;
using torch::nn::ReLU;

// BatchNorm has a bias, so the convolution needs none.
void append_convolution(Chain& chain, const std::string& name, Conv2dOptions options) {
  chain->push_back(name + "_conv", Conv2d(options.bias(false)));
  chain->push_back(name + "_bn", torch::nn::BatchNorm2d(options.out_channels()));
  chain->push_back(name + "_relu", ReLU(torch::nn::ReLUOptions().inplace(true)));
}

}  // namespace

Chain make_logistic_regression(std::int64_t inputs, std::int64_t classes) {
  return Chain(Flatten(), Linear(inputs, classes), torch::nn::Sigmoid());
}

Chain make_mcmahan_cnn(std::int64_t classes) {
  return Chain(Conv2d(Conv2dOptions(1, 32, 5).padding(2)), ReLU(), MaxPool2d(2),
               Conv2d(Conv2dOptions(32, 64, 5).padding(2)), ReLU(), MaxPool2d(2), Flatten(), Linear(7 * 7 * 64, 512),
               ReLU(), Linear(512, classes));
}

Chain make_dropout_cnn(std::int64_t classes) {
  return Chain(Conv2d(Conv2dOptions(1, 32, 3)), ReLU(), Conv2d(Conv2dOptions(32, 64, 3)), ReLU(), MaxPool2d(2),
               Dropout(0.25), Flatten(), Linear(12 * 12 * 64, 128), ReLU(), Dropout(0.5), Linear(128, classes));
}

Chain make_simple_cnn(std::int64_t classes) {
  return Chain(Conv2d(Conv2dOptions(1, 6, 5)), ReLU(), MaxPool2d(2), Conv2d(Conv2dOptions(6, 16, 5)), ReLU(),
               MaxPool2d(2), Flatten(), Linear(4 * 4 * 16, 120), ReLU(), Linear(120, 84), ReLU(), Linear(84, classes));
}

Chain make_mobilenet(std::int64_t classes) {
  // Channels after each pair, and its stride.
  constexpr std::array<std::pair<std::int64_t, std::int64_t>, 13> pairs = {{{64, 1},
                                                                            {128, 2},
                                                                            {128, 1},
                                                                            {256, 2},
                                                                            {256, 1},
                                                                            {512, 2},
                                                                            {512, 1},
                                                                            {512, 1},
                                                                            {512, 1},
                                                                            {512, 1},
                                                                            {512, 1},
                                                                            {1024, 2},
                                                                            {1024, 1}}};
  Chain chain;
  std::int64_t channels = 32;
  append_convolution(chain, "stem", Conv2dOptions(3, channels, 3).padding(1));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto [channels_out, stride] = pairs[i];
    append_convolution(chain, fmt::format("depthwise{}", i + 1),
                       Conv2dOptions(channels, channels, 3).stride(stride).padding(1).groups(channels));
    append_convolution(chain, fmt::format("pointwise{}", i + 1), Conv2dOptions(channels, channels_out, 1));
    channels = channels_out;
  }
  chain->push_back("avgpool", torch::nn::AdaptiveAvgPool2d(1));
  chain->push_back("flatten", Flatten());
  chain->push_back("fc", Linear(channels, classes));
  return chain;
}

}  // namespace fedrun::models
