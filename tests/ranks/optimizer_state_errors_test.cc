// Optimizers of users, which may lack what is needed or fail, and optimizers that differ between ranks.
#include <fedrun/core/error.h>
#include <fedrun/train/optimizer_state.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/rank_test.h"

namespace fedrun {
namespace {

using test::mismatch_error_of;
using test::rank;
using test::ranks;
using test::sum_over;
using test::usage_error_of;
using test::world;
using testing::HasSubstr;
using namespace torch::optim;

// An optimizer of a user, which only counts its steps.
struct EagerOptions : OptimizerCloneableOptions<EagerOptions> {
  explicit EagerOptions(double rate) : lr(rate) {}
  void serialize(torch::serialize::InputArchive& archive) override {
    c10::IValue value;
    archive.read("lr", value);
    lr = value.toDouble();
  }
  void serialize(torch::serialize::OutputArchive& archive) const override { archive.write("lr", c10::IValue(lr)); }
  double lr;
};

struct EagerState : OptimizerCloneableParamState<EagerState> {
  void serialize(torch::serialize::InputArchive& archive) override { archive.read("steps", steps); }
  void serialize(torch::serialize::OutputArchive& archive) const override { archive.write("steps", steps); }
  torch::Tensor steps = torch::zeros({}, torch::kInt32);
};

class Forgetful : public Optimizer {
 public:
  Forgetful(std::vector<torch::Tensor> parameters, double lr)
      : Optimizer(std::move(parameters), std::make_unique<EagerOptions>(lr)) {}

  torch::Tensor step(LossClosure) override {
    for (const torch::Tensor& parameter : param_groups()[0].params()) {
      auto& state = state_[parameter.unsafeGetTensorImpl()];
      if (!state) state = std::make_unique<EagerState>();
      static_cast<EagerState&>(*state).steps.add_(1);
    }
    return {};
  }
};

class Eager : public Forgetful {
 public:
  using Forgetful::Forgetful;
  bool breaks = false;

  void save(torch::serialize::OutputArchive& archive) const override {
    if (breaks) throw std::runtime_error("this optimizer is broken");
    torch::optim::serialize<EagerState, EagerOptions>(archive, *this);
  }
  void load(torch::serialize::InputArchive& archive) override {
    if (breaks) throw std::runtime_error("this optimizer is broken");
    torch::optim::serialize<EagerState, EagerOptions>(archive, *this);
  }

  int steps() const {
    if (state_.empty()) return 0;
    return static_cast<const EagerState&>(*state_.begin()->second).steps.item<int>();
  }
};

TEST(OptimizerState, OptimizersOfUsers) {
  const torch::Tensor parameter = torch::zeros({2}, torch::requires_grad());
  for (int root = 0; root < ranks(); ++root) {
    Eager optimizer({parameter}, rank() + 1);
    for (int i = 0; i < rank() + 2; ++i) optimizer.step(nullptr);
    broadcast_optimizer_state(world(), optimizer, {.root = root});
    EXPECT_EQ(optimizer.steps(), root + 2);
    EXPECT_EQ(static_cast<EagerOptions&>(optimizer.param_groups()[0].options()).lr, root + 1);
  }
}

TEST(OptimizerState, OptimizersOfUsersThatSaveNothing) {
  Forgetful optimizer({torch::zeros({2}, torch::requires_grad())}, 1);
  EXPECT_THAT(usage_error_of([&] { broadcast_optimizer_state(world(), optimizer); }),
              HasSubstr("Forgetful saves nothing: override its save() and load()"));
  EXPECT_EQ(sum_over(world(), 1), ranks());
}

TEST(OptimizerState, AnOptimizerThatFailsIsAnErrorOnEveryRank) {
  const int last = ranks() - 1;
  Eager optimizer({torch::zeros({2}, torch::requires_grad())}, 1);
  for (int i = 0; i <= rank(); ++i) optimizer.step(nullptr);
  optimizer.breaks = rank() == last;
  const std::string expected =
      "broadcast_optimizer_state: rank " + std::to_string(last) + " failed: this optimizer is broken";
  EXPECT_EQ(usage_error_of([&] { broadcast_optimizer_state(world(), optimizer, {.root = last}); }), expected) << "save";
  EXPECT_EQ(usage_error_of([&] { broadcast_optimizer_state(world(), optimizer); }), expected) << "load";
  if (optimizer.breaks) {
    EXPECT_EQ(optimizer.steps(), rank() + 1) << "the state stays where loading fails";
  }
  EXPECT_EQ(sum_over(world(), 1), ranks());
}

TEST(OptimizerState, OptimizersThatDiffer) {
  if (ranks() == 1) GTEST_SKIP() << "one rank cannot disagree";
  const bool is_first = rank() == 0;
  torch::nn::Linear model(3, 2);
  SGD sgd(model->parameters(), 1);
  Adam adam(model->parameters(), 1);
  Optimizer& either = is_first ? static_cast<Optimizer&>(sgd) : static_cast<Optimizer&>(adam);
  EXPECT_THAT(mismatch_error_of([&] { broadcast_optimizer_state(world(), either); }),
              HasSubstr("rank 0 has torch::optim::SGD with 1 parameter groups, from root 0, rank 1 has "
                        "torch::optim::Adam with 1 parameter groups"));

  SGD fewer(is_first ? model->parameters() : std::vector<torch::Tensor>{model->weight}, 1);
  EXPECT_THAT(mismatch_error_of([&] { broadcast_optimizer_state(world(), fewer); }),
              HasSubstr("rank 0 has group 0 with 2 parameters, rank 1 has group 0 with 1 parameters"));

  SGD groups(std::vector<OptimizerParamGroup>{OptimizerParamGroup({model->weight})}, 1);
  if (is_first) groups.add_param_group(OptimizerParamGroup({model->bias}));
  EXPECT_THAT(mismatch_error_of([&] { broadcast_optimizer_state(world(), groups); }),
              HasSubstr("SGD with 2 parameter groups, from root 0, rank 1 has torch::optim::SGD with 1 parameter"));

  SGD shapes({torch::zeros({2, is_first ? 3 : 4}, torch::requires_grad())}, 1);
  EXPECT_THAT(mismatch_error_of([&] { broadcast_optimizer_state(world(), shapes); }),
              HasSubstr("rank 0 has parameter 0 of group 0, Float[2, 3], rank 1 has parameter 0 of group 0, "
                        "Float[2, 4]. Build the same optimizer for the same model on every rank."));

  EXPECT_THAT(mismatch_error_of([&] { broadcast_optimizer_state(world(), sgd, {.root = is_first ? 0 : 1}); }),
              HasSubstr("from root 0, rank 1 has torch::optim::SGD with 1 parameter groups, from root 1"));
  EXPECT_EQ(sum_over(world(), 1), ranks());
}

TEST(OptimizerState, RootsThatAreNoRank) {
  SGD optimizer({torch::zeros({2}, torch::requires_grad())}, 1);
  EXPECT_THAT(usage_error_of([&] { broadcast_optimizer_state(world(), optimizer, {.root = ranks()}); }),
              HasSubstr("there is no rank " + std::to_string(ranks())));
}

}  // namespace
}  // namespace fedrun
