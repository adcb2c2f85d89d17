// Models of 16 bits whose optimizer steps f32 copies of their parameters.
#include <fedrun/core/error.h>
#include <fedrun/train/broadcast.h>
#include <fedrun/train/distributed_optimizer.h>
#include <fedrun/train/join_scope.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/rank_test.h"
#include "support/torch_device.h"

namespace fedrun {
namespace {

using test::rank;
using test::ranks;
using test::world;

// One weight that is exactly 1 at first, and gets the gradient that the test says.
class OneWeight {
 public:
  OneWeight(torch::ScalarType type, const DistributedOptimizerOptions& options, double lr)
      : weight_(test::ones({1}, torch::dtype(type)).set_requires_grad(true)) {
    names_.insert("weight", weight_);
    optimizer_.emplace(world(), std::make_unique<torch::optim::SGD>(std::vector{weight_}, lr), names_, options);
  }

  void backward(double gradient) { (weight_ * gradient).sum().backward(); }
  void step() { optimizer_->step(); }
  double value() const { return weight_.detach().to(torch::kFloat64).item<double>(); }
  torch::Tensor parameter() const { return weight_; }
  // As torch::load does it.
  void load(double value) { weight_.set_data(torch::full_like(weight_, value)); }
  double master() { return optimizer_->inner().param_groups()[0].params()[0].item<double>(); }
  DistributedOptimizer& optimizer() { return *optimizer_; }

 private:
  torch::Tensor weight_;
  torch::OrderedDict<std::string, torch::Tensor> names_;
  std::optional<DistributedOptimizer> optimizer_;
};

constexpr double small = 1.0 / 1024;  // a quarter of what a bf16 near 1 can tell apart

TEST(MasterWeights, KeepStepsThatAreTooSmallForTheParameter) {
  OneWeight with(torch::kBFloat16, {.master_weights = true}, small);
  OneWeight without(torch::kBFloat16, {}, small);
  for (int step = 0; step < 64; ++step) {
    for (OneWeight* weight : {&with, &without}) {
      weight->optimizer().zero_grad();
      weight->backward(1);
      weight->step();
    }
  }
  EXPECT_EQ(without.value(), 1) << "this test shows nothing";
  EXPECT_EQ(with.value(), 1 - 64 * small);
}

TEST(MasterWeights, AddGradientsUpInSinglePrecision) {
  // 1 + 64 · 1/512, of which each would be lost in a bf16 beside the 1.
  OneWeight weight(torch::kBFloat16, {.backward_passes_per_step = 65, .master_weights = true}, 0.5);
  for (int step = 0; step < 2; ++step) {
    weight.optimizer().zero_grad();
    weight.backward(1);
    for (int pass = 0; pass < 64; ++pass) weight.backward(1.0 / 512);
    const double before = weight.master();
    weight.step();
    // The first window is added up by autograd, before the parameter has a place.
    if (step == 1) {
      EXPECT_EQ(weight.master(), before - 0.5 * 1.125);
    }
  }
}

TEST(MasterWeights, AverageOverRanksInSinglePrecision) {
  // Rank 0 has 1, the others 1/512: their sum is no bf16.
  OneWeight weight(torch::kBFloat16, {.op = ReduceOp::sum, .master_weights = true}, 1);
  weight.backward(rank() == 0 ? 1 : 1.0 / 512);
  weight.step();
  EXPECT_EQ(weight.master(), -(ranks() - 1) / 512.0);
}

TEST(MasterWeights, LeaveWideParametersAlone) {
  OneWeight weight(torch::kFloat32, {.master_weights = true}, 0.25);
  weight.backward(1);
  weight.step();
  EXPECT_EQ(weight.value(), 0.75);
}

TEST(MasterWeights, TrainLikeAModelOfSinglePrecision) {
  torch::manual_seed(3);
  auto wide = test::here(torch::nn::Linear(8, 4));
  auto narrow = test::here(torch::nn::Linear(8, 4));
  {
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < 2; ++i) narrow->parameters()[i].copy_(wide->parameters()[i]);
  }
  narrow->to(torch::kBFloat16);
  const auto make = [](torch::nn::Linear& model, bool masters) {
    return std::make_unique<DistributedOptimizer>(
        world(), std::make_unique<torch::optim::SGD>(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9)),
        model->named_parameters(), DistributedOptimizerOptions{.master_weights = masters});
  };
  const auto of_wide = make(wide, false);
  const auto of_narrow = make(narrow, true);
  for (int step = 0; step < 30; ++step) {
    const torch::Tensor input = test::randn({6, 8}) + 0.1 * rank();
    of_wide->zero_grad();
    of_narrow->zero_grad();
    wide->forward(input).square().mean().backward();
    narrow->forward(input.to(torch::kBFloat16)).square().mean().backward();
    if (step == 10) {
      EXPECT_NEAR(of_wide->clip_gradient_norm(0.1), of_narrow->clip_gradient_norm(0.1), 0.02);
    }
    of_wide->step();
    of_narrow->step();
  }
  EXPECT_LT((wide->weight - narrow->weight.to(torch::kFloat32)).abs().max().item<double>(), 0.02);
  const torch::Tensor mine = narrow->weight.detach().to(torch::kFloat32).cpu().contiguous();
  const auto all = world().allgather(std::span(mine.const_data_ptr<float>(), static_cast<std::size_t>(mine.numel())));
  for (const auto& other : all) EXPECT_EQ(other, all.front());
}

TEST(MasterWeights, FollowAParameterThatOthersWriteTo) {
  OneWeight weight(torch::kBFloat16, {.master_weights = true}, small);
  weight.backward(1);
  weight.step();
  EXPECT_EQ(weight.master(), 1 - small);
  weight.load(rank() == 0 ? 2 : 3);  // as from a checkpoint, on one rank
  broadcast_tensors(world(), {{"weight", weight.parameter()}});
  weight.optimizer().zero_grad();
  weight.backward(1);
  weight.step();
  EXPECT_EQ(weight.master(), 2 - small);
  EXPECT_EQ(weight.value(), 2);
}

TEST(MasterWeights, AreTheSameOnAllRanksAfterJoin) {
  torch::manual_seed(3);
  auto model = test::here(torch::nn::Linear(8, 4));
  model->to(torch::kBFloat16);
  broadcast_parameters(world(), *model);
  DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 1.0 / 512),
                                 model->named_parameters(), {.master_weights = true});
  for (int epoch = 0; epoch < 2; ++epoch) {
    join_scope(optimizer, *model, [&] {
      for (int step = 0; step < 3 + 2 * rank(); ++step) {
        optimizer.zero_grad();
        model->forward(test::randn({6, 8}).to(torch::kBFloat16)).square().mean().backward();
        optimizer.step();
      }
    });
  }
  for (const auto& [name, weights] : optimizer.master_weights()) {
    const torch::Tensor mine = weights.detach().cpu().contiguous();
    const auto all = world().allgather(std::span(mine.const_data_ptr<float>(), static_cast<std::size_t>(mine.numel())));
    for (const auto& other : all) EXPECT_EQ(other, all.front()) << name;
  }
}

TEST(MasterWeights, AParameterThatNoRankUsedStays) {
  OneWeight weight(torch::kBFloat16, {.master_weights = true}, 0.5);
  weight.backward(1);
  weight.step();
  weight.optimizer().zero_grad();
  weight.step();
  EXPECT_EQ(weight.master(), 0.5);
}

TEST(MasterWeights, AreRefusedWhereTheyMeanNothing) {
  using testing::HasSubstr;
  const auto error_of = [](const DistributedOptimizerOptions& options) {
    return test::usage_error_of([&] { OneWeight(torch::kBFloat16, options, 1); });
  };
  EXPECT_THAT(error_of({.sharded = true, .master_weights = true}), HasSubstr("cannot be combined with sharded"));
  EXPECT_THAT(error_of({.op = ReduceOp::adasum, .master_weights = true}), HasSubstr("cannot be combined with Adasum"));
}

}  // namespace
}  // namespace fedrun
