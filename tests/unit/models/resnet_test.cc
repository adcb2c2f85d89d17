// ResNets against the parameter counts that the literature and torchvision give for them.
#include <fedrun/models/resnet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "parameter_count.h"
#include "support/error_text.h"

namespace fedrun::models {
namespace {

using test::usage_error_of;
using testing::HasSubstr;

using Shape = std::vector<int64_t>;

ResNet make(int depth, Stem stem, int64_t classes) {
  return ResNet(ResNetOptions{.depth = depth, .stem = stem, .classes = classes});
}

TEST(ResNet, HasTheKnownParameterCounts) {
  EXPECT_EQ(parameter_count(*make(18, Stem::imagenet, 1000)), 11'689'512);
  EXPECT_EQ(parameter_count(*make(50, Stem::imagenet, 1000)), 25'557'032);
  EXPECT_EQ(parameter_count(*make(18, Stem::cifar, 10)), 11'173'962);
  EXPECT_EQ(parameter_count(*make(50, Stem::cifar, 10)), 23'520'842);
}

TEST(ResNet, MapsImagesToClasses) {
  const torch::NoGradGuard no_grad;
  EXPECT_EQ(make(18, Stem::cifar, 10)->forward(torch::zeros({2, 3, 32, 32})).sizes(), (Shape{2, 10}));
  EXPECT_EQ(make(50, Stem::cifar, 7)->forward(torch::zeros({1, 3, 32, 32})).sizes(), (Shape{1, 7}));
  EXPECT_EQ(make(18, Stem::imagenet, 5)->forward(torch::zeros({1, 3, 64, 64})).sizes(), (Shape{1, 5}));
  EXPECT_EQ(make(50, Stem::imagenet, 5)->forward(torch::zeros({1, 3, 64, 64})).sizes(), (Shape{1, 5}));
}

// What leaves the part with this name.
torch::Tensor value_after(const std::string& last, ResNet& model, const torch::Tensor& images) {
  const torch::NoGradGuard no_grad;
  torch::Tensor value = images;
  const std::vector<std::string> names = model->named_children().keys();
  std::size_t index = 0;
  for (torch::nn::AnyModule& module : *model) {
    value = module.forward(value);
    if (names[index++] == last) break;
  }
  return value;
}

TEST(ResNet, ShrinksImagesWhereItsStemAndStagesSay) {
  ResNet small = make(18, Stem::cifar, 10);
  const torch::Tensor image = torch::zeros({1, 3, 32, 32});
  EXPECT_EQ(value_after("layer1", small, image).sizes(), (Shape{1, 64, 32, 32}));
  EXPECT_EQ(value_after("layer2", small, image).sizes(), (Shape{1, 128, 16, 16}));
  EXPECT_EQ(value_after("layer4", small, image).sizes(), (Shape{1, 512, 4, 4}));
  ResNet large = make(50, Stem::imagenet, 10);
  const torch::Tensor large_image = torch::zeros({1, 3, 224, 224});
  EXPECT_EQ(value_after("maxpool", large, large_image).sizes(), (Shape{1, 64, 56, 56}));
  EXPECT_EQ(value_after("layer1", large, large_image).sizes(), (Shape{1, 256, 56, 56}));
  EXPECT_EQ(value_after("layer4", large, large_image).sizes(), (Shape{1, 2048, 7, 7}));
}

TEST(ResNet, HasTheNamesOfTorchvision) {
  const auto parameters = make(50, Stem::imagenet, 1000)->named_parameters();
  EXPECT_EQ(parameters["conv1.weight"].sizes(), (Shape{64, 3, 7, 7}));
  EXPECT_EQ(parameters["bn1.bias"].sizes(), (Shape{64}));
  EXPECT_EQ(parameters["layer1.0.downsample.0.weight"].sizes(), (Shape{256, 64, 1, 1}));
  EXPECT_EQ(parameters["layer2.0.conv2.weight"].sizes(), (Shape{128, 128, 3, 3}));
  EXPECT_EQ(parameters["layer4.2.bn3.weight"].sizes(), (Shape{2048}));
  EXPECT_EQ(parameters["fc.weight"].sizes(), (Shape{1000, 2048}));
}

TEST(ResNet, PutsTheStrideOfABottleneckIntoIts3x3) {
  for (const auto& module : make(50, Stem::cifar, 10)->named_modules()) {
    const auto* convolution = module.value()->as<torch::nn::Conv2d>();
    if (convolution == nullptr) continue;
    const bool is_strided = module.key() == "layer2.0.conv2" || module.key() == "layer3.0.conv2" ||
                            module.key() == "layer4.0.conv2" || module.key().ends_with("downsample.0");
    const bool is_first_stage = module.key().starts_with("layer1");
    EXPECT_EQ(convolution->options.stride()->at(0), is_strided && !is_first_stage ? 2 : 1) << module.key();
  }
}

TEST(ResNet, StartsWithKaimingByFanOut) {
  torch::manual_seed(1);
  const auto parameters = make(18, Stem::cifar, 10)->named_parameters();
  const auto expected = [](double fan_out) { return std::sqrt(2.0 / fan_out); };
  EXPECT_NEAR(parameters["layer4.1.conv2.weight"].std().item<double>(), expected(512 * 9), 1e-4);
  EXPECT_NEAR(parameters["layer2.0.conv1.weight"].std().item<double>(), expected(128 * 9), 1e-3);  // fan-in: 64 · 9
  EXPECT_TRUE(torch::equal(parameters["layer1.0.bn2.weight"], torch::ones(64)));
  EXPECT_TRUE(torch::equal(parameters["layer1.0.bn2.bias"], torch::zeros(64)));
}

TEST(ResNet, AddsTheInputOfABlockToItsOutput) {
  const torch::NoGradGuard no_grad;
  ResNet model = make(18, Stem::cifar, 10);
  model->eval();
  const auto parameters = model->named_parameters();
  for (const char* name : {"layer1.0.bn2.weight", "layer1.1.bn2.weight"}) parameters[name].zero_();
  const torch::Tensor images = torch::randn({2, 3, 8, 8});
  // Blocks that add nothing pass on what is not negative already.
  EXPECT_TRUE(torch::equal(value_after("layer1", model, images), value_after("relu", model, images)));
}

TEST(ResNet, ClonesAreIndependent) {
  const torch::NoGradGuard no_grad;
  ResNet model = make(18, Stem::cifar, 3);
  model->eval();
  ResNet copy(std::dynamic_pointer_cast<ResNetImpl>(model->clone()));
  copy->eval();
  const torch::Tensor images = torch::randn({1, 3, 16, 16});
  EXPECT_EQ(copy->named_parameters().keys(), model->named_parameters().keys());
  EXPECT_TRUE(torch::equal(copy->forward(images), model->forward(images)));
  model->named_parameters()["layer1.0.conv1.weight"].zero_();
  EXPECT_FALSE(torch::equal(copy->forward(images), model->forward(images)));
}

TEST(ResNet, RefusesWhatItCannotBe) {
  EXPECT_THAT(usage_error_of([] { make(34, Stem::cifar, 10); }), HasSubstr("depth 34 here: choose 18, 50 or 56"));
  EXPECT_THAT(usage_error_of([] { make(18, Stem::cifar, 0); }), HasSubstr("0 classes"));
}

}  // namespace
}  // namespace fedrun::models
