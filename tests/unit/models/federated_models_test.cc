// Checks of the federated models what their parameter counts, which registry_test.cc compares, do not show.
#include <fedrun/models/federated_models.h>
#include <fedrun/models/resnet.h>
#include <fedrun/models/rnn.h>
#include <gtest/gtest.h>

#include "parameter_count.h"

namespace fedrun::models {
namespace {

TEST(LogisticRegression, IsTheSigmoidOfALinearMap) {
  const torch::NoGradGuard no_grad;
  Chain model = make_logistic_regression(2, 2);
  model->parameters()[0].copy_(torch::tensor({{1, 0}, {0, -1}}));
  model->parameters()[1].zero_();
  const torch::Tensor output = model->forward(torch::tensor({{{0.F}, {3.F}}}));
  EXPECT_FLOAT_EQ(output[0][0].item<float>(), 0.5F);
  EXPECT_FLOAT_EQ(output[0][1].item<float>(), 1 / (1 + std::exp(3.F)));
}

TEST(DropoutCnn, DropsOnlyWhileTraining) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  Chain model = make_dropout_cnn(62);
  EXPECT_EQ(parameter_count(*model), 1'206'590);
  const torch::Tensor images = torch::rand({2, 1, 28, 28});
  EXPECT_FALSE(torch::equal(model->forward(images), model->forward(images)));
  model->eval();
  EXPECT_TRUE(torch::equal(model->forward(images), model->forward(images)));
}

TEST(MobileNet, ShrinksImagesByItsStrides) {
  const torch::NoGradGuard no_grad;
  Chain model = make_mobilenet();
  torch::Tensor value = torch::zeros({1, 3, 32, 32});
  for (torch::nn::AnyModule& module : *model) {
    if (module.ptr()->as<torch::nn::AdaptiveAvgPool2d>() != nullptr) break;
    value = module.forward(value);
  }
  EXPECT_EQ(value.sizes(), (std::vector<int64_t>{1, 1024, 2, 2}));
}

TEST(CharacterRnn, LooksAtTheWholeText) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  CharacterRnn model;
  torch::Tensor text = torch::full({1, 80}, 5, torch::kUInt8);
  const torch::Tensor before = model->forward(text);
  text[0][78] = 7;
  EXPECT_FALSE(torch::equal(model->forward(text), before));
}

TEST(ResNetWithGroupNorm, HasNoBuffersThatTrainingChanges) {
  ResNet model(ResNetOptions{.norm = Norm::group});
  EXPECT_TRUE(model->buffers().empty());
  EXPECT_EQ(parameter_count(*model), 11'173'962);
  const auto copy = std::dynamic_pointer_cast<ResNetImpl>(model->clone());
  const torch::NoGradGuard no_grad;
  const torch::Tensor images = torch::rand({2, 3, 32, 32});
  EXPECT_TRUE(torch::equal(copy->forward(images), model->forward(images)));
}

}  // namespace
}  // namespace fedrun::models
