// LARS against a step worked out by hand, and against its formulas written down in plain tensors.
#include <fedrun/train/lars.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "support/error_text.h"

namespace fedrun {
namespace {

using test::usage_error_of;
using testing::HasSubstr;
using torch::optim::OptimizerParamGroup;

torch::Tensor variable(const torch::Tensor& values) { return values.to(torch::kFloat64).clone().requires_grad_(); }

void set_gradient(const torch::Tensor& parameter, const torch::Tensor& gradient) {
  parameter.mutable_grad() = gradient.to(torch::kFloat64);
}

TEST(Lars, TakesTheStepOfTheFormula) {
  const torch::Tensor weight = variable(torch::tensor({{3.0, 4.0}}));  // |w| = 5
  const torch::Tensor bias = variable(torch::tensor({1.0}));
  Lars optimizer({weight, bias}, LarsOptions(2).momentum(0).weight_decay(0.5).trust_coefficient(0.25).eps(0));
  set_gradient(weight, torch::tensor({{0.0, 2.5}}));  // |g| = 2.5, and 0.5 · |w| = 2.5: the rate is 0.25 · 5 / 5
  set_gradient(bias, torch::tensor({0.125}));
  optimizer.step();
  // w - 2 · 0.25 · (g + 0.5 · w) = (3, 4) - 0.5 · (1.5, 4.5)
  EXPECT_TRUE(torch::equal(weight, torch::tensor({{2.25, 1.75}}, torch::kFloat64))) << weight;
  // The bias gets neither: 1 - 2 · 0.125.
  EXPECT_EQ(bias.item<double>(), 0.75);
  EXPECT_TRUE(torch::equal(weight.grad(), torch::tensor({{0.0, 2.5}}, torch::kFloat64))) << "a gradient was changed";
}

TEST(Lars, AdaptsBiasesWhereItIsToldTo) {
  const torch::Tensor bias = variable(torch::tensor({3.0, 4.0}));
  Lars optimizer(
      {bias},
      LarsOptions(2).momentum(0).weight_decay(0.5).trust_coefficient(0.25).eps(0).exclude_one_dimensional(false));
  set_gradient(bias, torch::tensor({0.0, 2.5}));
  optimizer.step();
  EXPECT_TRUE(torch::equal(bias, torch::tensor({2.25, 1.75}, torch::kFloat64))) << bias;
}

TEST(Lars, IsSgdWhereANormIsZero) {
  const torch::Tensor zero = variable(torch::zeros({1, 2}));
  const torch::Tensor still = variable(torch::tensor({{3.0, 4.0}}));
  const torch::Tensor without_gradient = variable(torch::ones({1, 2}));
  Lars optimizer({zero, still, without_gradient}, LarsOptions(0.5).momentum(0).weight_decay(0.5));
  set_gradient(zero, torch::tensor({{1.0, 2.0}}));
  set_gradient(still, torch::zeros({1, 2}));
  optimizer.step();
  EXPECT_TRUE(torch::equal(zero, torch::tensor({{-0.5, -1.0}}, torch::kFloat64))) << zero;
  EXPECT_TRUE(torch::equal(still, torch::tensor({{2.25, 3.0}}, torch::kFloat64))) << still;  // decays all the same
  EXPECT_TRUE(torch::equal(without_gradient, torch::ones({1, 2}, torch::kFloat64)));
}

TEST(Lars, KnowsTheNormsOfLargeLayers) {
  const torch::Tensor weight = torch::ones({4096, 4096}, torch::requires_grad());  // |w| = 4096
  Lars optimizer({weight}, LarsOptions(1).momentum(0).trust_coefficient(0.5).eps(0));
  weight.mutable_grad() = torch::zeros({4096, 4096});
  weight.mutable_grad().diagonal().fill_(0.25);  // |g| = 16: the rate is 0.5 · 4096 / 16
  optimizer.step();
  EXPECT_NEAR(weight[0][0].item<float>(), 1 - 128 * 0.25, 1e-4);
  EXPECT_EQ(weight[0][1].item<float>(), 1);
}

// The same formulas without any of the care that the optimizer takes.
struct PlainLars {
  LarsOptions options;
  torch::Tensor weight;
  torch::Tensor momentum = torch::zeros_like(weight);

  void step(const torch::Tensor& gradient) {
    const double weight_norm = std::sqrt(weight.square().sum().item<double>());
    const double gradient_norm = std::sqrt(gradient.square().sum().item<double>());
    const double rate = options.trust_coefficient() * weight_norm /
                        (gradient_norm + options.weight_decay() * weight_norm + options.eps());
    const torch::Tensor direction = rate * (gradient + options.weight_decay() * weight);
    momentum = options.momentum() * momentum + direction;
    weight = weight - options.lr() * (options.nesterov() ? direction + options.momentum() * momentum : momentum);
  }
};

torch::Tensor gradient_at(int step) {
  return torch::arange(6, torch::kFloat64).view({2, 3}).sub(2.5).mul(0.1 * step + 0.3).sin();
}

void expect_plain_steps(const LarsOptions& options) {
  const torch::Tensor start = torch::linspace(-1, 2, 6, torch::kFloat64).view({2, 3});
  const torch::Tensor weight = variable(start);
  Lars optimizer({weight}, options);
  PlainLars plain{options, start};
  for (int step = 0; step < 5; ++step) {
    set_gradient(weight, gradient_at(step));
    optimizer.step();
    plain.step(gradient_at(step));
    EXPECT_TRUE(torch::allclose(weight, plain.weight, 1e-13, 1e-15)) << weight << plain.weight;
  }
}

TEST(Lars, FollowsTheFormulasOverManySteps) {
  expect_plain_steps(LarsOptions(3));
  expect_plain_steps(LarsOptions(3).momentum(0).weight_decay(0.01));
  expect_plain_steps(LarsOptions(3).momentum(0.5).weight_decay(0.01).eps(0.1).trust_coefficient(0.02));
  expect_plain_steps(LarsOptions(3).nesterov(true).weight_decay(0.01).trust_coefficient(0.02));
}

TEST(Lars, TakesOptionsForEachParameterGroup) {
  const torch::Tensor slow = variable(torch::tensor({1.0}));
  const torch::Tensor fast = variable(torch::tensor({1.0}));
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>{slow});
  groups.emplace_back(std::vector<torch::Tensor>{fast}, std::make_unique<LarsOptions>(LarsOptions(0.5).momentum(0)));
  Lars optimizer(groups, LarsOptions(0.25).momentum(0));
  set_gradient(slow, torch::tensor({1.0}));
  set_gradient(fast, torch::tensor({1.0}));
  optimizer.step();
  EXPECT_EQ(slow.item<double>(), 0.75);
  EXPECT_EQ(fast.item<double>(), 0.5);
  optimizer.param_groups()[0].options().set_lr(0.5);
  EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 0.5);
  optimizer.step();
  EXPECT_EQ(slow.item<double>(), 0.25);
}

TEST(Lars, TakesParameterGroupsLater) {
  const torch::Tensor first = variable(torch::tensor({1.0}));
  const torch::Tensor second = variable(torch::tensor({1.0}));
  const torch::Tensor third = variable(torch::tensor({1.0}));
  Lars optimizer({first}, LarsOptions(0.25).momentum(0));
  optimizer.add_param_group(OptimizerParamGroup(std::vector<torch::Tensor>{second}));
  optimizer.add_param_group(OptimizerParamGroup(std::vector<torch::Tensor>{third},
                                                std::make_unique<LarsOptions>(LarsOptions(0.5).momentum(0))));
  for (const torch::Tensor& parameter : {first, second, third}) set_gradient(parameter, torch::tensor({1.0}));
  optimizer.step();
  EXPECT_EQ(first.item<double>(), 0.75);
  EXPECT_EQ(second.item<double>(), 0.75);
  EXPECT_EQ(third.item<double>(), 0.5);
}

TEST(Lars, GoesOnFromASavedState) {
  const torch::Tensor start = torch::linspace(-1, 2, 6, torch::kFloat64).view({2, 3});
  const LarsOptions options = LarsOptions(3).weight_decay(0.01).trust_coefficient(0.02).nesterov(true);
  const torch::Tensor weight = variable(start);
  Lars optimizer({weight}, options);
  for (int step = 0; step < 3; ++step) {
    set_gradient(weight, gradient_at(step));
    optimizer.step();
  }
  std::stringstream saved;
  torch::save(optimizer, saved);

  const torch::Tensor resumed = variable(weight.detach());
  Lars other({resumed}, LarsOptions(1));
  torch::load(other, saved);
  EXPECT_EQ(static_cast<const LarsOptions&>(other.param_groups()[0].options()), options);
  for (int step = 3; step < 5; ++step) {
    for (auto* continued : {&optimizer, &other}) {
      set_gradient(continued->param_groups()[0].params()[0], gradient_at(step));
      continued->step();
    }
  }
  EXPECT_TRUE(torch::equal(resumed, weight)) << resumed << weight;
}

TEST(Lars, CopiesOptionsWithTheirType) {
  const LarsOptions options = LarsOptions(0.5).eps(0.25).exclude_one_dimensional(false);
  const torch::optim::OptimizerOptions& base = options;
  const std::unique_ptr<torch::optim::OptimizerOptions> copy = base.clone();
  EXPECT_EQ(dynamic_cast<const LarsOptions&>(*copy), options);
  EXPECT_FALSE(dynamic_cast<const LarsOptions&>(*copy) == LarsOptions(0.5));
}

TEST(Lars, CallsTheClosure) {
  const torch::Tensor weight = variable(torch::tensor({4.0}));
  Lars optimizer({weight}, LarsOptions(0.25).momentum(0));
  const torch::Tensor loss = optimizer.step([&] {
    const torch::Tensor square = weight.square().sum();
    square.backward();
    return square;
  });
  EXPECT_EQ(loss.item<double>(), 16);
  EXPECT_EQ(weight.item<double>(), 2);
}

TEST(Lars, RefusesOptionsThatMakeNoSense) {
  const std::vector<torch::Tensor> parameters = {variable(torch::ones({1, 1}))};
  const auto error_of = [&](const LarsOptions& options) { return usage_error_of([&] { Lars(parameters, options); }); };
  EXPECT_EQ(error_of(LarsOptions(-1)), "Lars: lr is -1: give 0 or more");
  EXPECT_THAT(error_of(LarsOptions(1).momentum(1)), HasSubstr("momentum is 1"));
  EXPECT_THAT(error_of(LarsOptions(1).weight_decay(-0.1)), HasSubstr("weight_decay is -0.1"));
  EXPECT_THAT(error_of(LarsOptions(1).trust_coefficient(0)), HasSubstr("trust_coefficient is 0"));
  EXPECT_THAT(error_of(LarsOptions(1).eps(-1)), HasSubstr("eps is -1"));
  EXPECT_THAT(error_of(LarsOptions(1).momentum(0).nesterov(true)), HasSubstr("more than 0 with nesterov"));
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(parameters, std::make_unique<torch::optim::SGDOptions>(0.1));
  EXPECT_THAT(usage_error_of([&] { Lars(groups, LarsOptions(1)); }), HasSubstr("the options of another optimizer"));
}

}  // namespace
}  // namespace fedrun
