#include <fedrun/models/mlp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parameter_count.h"
#include "support/error_text.h"

namespace fedrun::models {
namespace {

using test::usage_error_of;
using testing::HasSubstr;

TEST(Mlp, HasTwentyMillionParameters) {
  Mlp model;
  EXPECT_EQ(parameter_count(*model), (784 + 1) * 4096 + (4096 + 1) * 4096 + (4096 + 1) * 10);
  EXPECT_EQ(parameter_count(*model), 20'037'642);
  EXPECT_EQ(model->forward(torch::zeros({2, 1, 28, 28})).sizes(), (std::vector<int64_t>{2, 10}));
}

TEST(Mlp, IsLinearLayersWithReluBetween) {
  Mlp model(MlpOptions{.sizes = {2, 2, 1}});
  const torch::NoGradGuard no_grad;
  const auto parameters = model->named_parameters();
  parameters["layers.0.weight"].copy_(torch::tensor({{1, 0}, {0, 1}}));
  parameters["layers.0.bias"].copy_(torch::tensor({-1, -1}));
  parameters["layers.2.weight"].copy_(torch::tensor({{1, 10}}));
  parameters["layers.2.bias"].fill_(0.5);
  // (3, 0) → (2, -1) → (2, 0) → 2.5: the last layer has no ReLU, the first one has.
  EXPECT_EQ(model->forward(torch::tensor({{{3.F}, {0.F}}})).item<float>(), 2.5);
  EXPECT_EQ(model->forward(torch::tensor({{{0.F}, {4.F}}})).item<float>(), 30.5);
}

TEST(Mlp, RefusesSizesOfNoNetwork) {
  EXPECT_THAT(usage_error_of([] { Mlp(MlpOptions{.sizes = {784}}); }), HasSubstr("Mlp: sizes are [784]"));
  EXPECT_THAT(usage_error_of([] { Mlp(MlpOptions{.sizes = {784, 0, 10}}); }), HasSubstr("[784, 0, 10]"));
}

}  // namespace
}  // namespace fedrun::models
