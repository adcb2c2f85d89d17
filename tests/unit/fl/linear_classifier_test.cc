#include <fedrun/fl/linear_classifier.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "support/error_text.h"

namespace fedrun::fl {
namespace {

constexpr std::int64_t features = 37;
constexpr std::int64_t classes = 6;
constexpr std::int64_t rows = 9;

class Linear : public testing::TestWithParam<LinearOutput> {
 protected:
  double add_gradient(float rate, const torch::Tensor& sum) {
    return classifier_.add_gradient(
        weights_.const_data_ptr<float>(),
        {inputs_.const_data_ptr<float>(), static_cast<std::size_t>(rows), static_cast<std::size_t>(features)},
        targets_.const_data_ptr<std::int64_t>(), rate, sum.data_ptr<float>());
  }

  // Autograd's loss and gradient.
  std::pair<double, torch::Tensor> expected() const {
    const torch::Tensor weights = weights_.clone().requires_grad_(true);
    torch::Tensor output = torch::addmm(weights.narrow(0, classes * features, classes), inputs_,
                                        weights.narrow(0, 0, classes * features).view({classes, features}).t());
    if (GetParam() == LinearOutput::sigmoid) output = output.sigmoid();
    const torch::Tensor loss = torch::cross_entropy_loss(output, targets_);
    loss.backward();
    return {loss.item<double>(), weights.grad()};
  }

  torch::Tensor random(std::int64_t count) { return torch::randn({count}, generator_); }

  at::Generator generator_ = at::detail::createCPUGenerator(3);
  torch::Tensor weights_ = random((features + 1) * classes);
  torch::Tensor inputs_ = random(rows * features).view({rows, features});
  torch::Tensor targets_ = torch::arange(rows).remainder(classes);
  LinearClassifier classifier_{features, classes, GetParam()};
};

TEST_P(Linear, HasTheGradientOfAutograd) {
  const auto [loss, gradient] = expected();
  const torch::Tensor sum = torch::ones_like(weights_);
  EXPECT_NEAR(add_gradient(2, sum), loss, 1e-5);
  EXPECT_LT((sum - 1 - 2 * gradient).abs().max().item<double>(), 1e-5);
}

TEST_P(Linear, StepsInPlace) {
  const torch::Tensor after = weights_ - 0.5 * expected().second;
  add_gradient(-0.5, weights_);
  EXPECT_LT((weights_ - after).abs().max().item<double>(), 1e-5);
}

TEST_P(Linear, IsCalmAboutLargeScores) {
  weights_ *= 1000;
  const torch::Tensor sum = torch::zeros_like(weights_);
  EXPECT_TRUE(std::isfinite(add_gradient(1, sum)));
  EXPECT_TRUE(torch::isfinite(sum).all().item<bool>());
}

TEST_P(Linear, RefusesTargetsThatAreNoClass) {
  for (const std::int64_t wrong : {std::int64_t{-1}, classes}) {
    targets_[4] = wrong;
    EXPECT_EQ(test::usage_error_of([&] { add_gradient(1, weights_); }),
              "a sample of class " + std::to_string(wrong) + ", where there are 6 classes");
  }
}

INSTANTIATE_TEST_SUITE_P(Outputs, Linear, testing::Values(LinearOutput::scores, LinearOutput::sigmoid),
                         [](const auto& output) {
                           return output.param == LinearOutput::scores ? "scores" : "sigmoid";
                         });

}  // namespace
}  // namespace fedrun::fl
