// Every optimizer of Torch: after the broadcast each rank has the root's options and state, and steps as the root does.
#include <fedrun/core/error.h>
#include <fedrun/train/broadcast.h>
#include <fedrun/train/distributed_optimizer.h>
#include <fedrun/train/optimizer_state.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "support/rank_test.h"

namespace fedrun {
namespace {

using test::rank;
using test::ranks;
using test::sum_over;
using test::world;
using namespace torch::optim;

torch::nn::Linear make_model(torch::ScalarType type = torch::kFloat32) {
  torch::manual_seed(1);
  torch::nn::Linear model(3, 2);
  model->to(type);
  return model;
}

void take_steps(Optimizer& optimizer, torch::nn::Linear& model, int steps) {
  const torch::Tensor input = torch::arange(6, model->weight.options().requires_grad(false)).reshape({2, 3});
  for (int i = 0; i < steps; ++i) {
    optimizer.step([&] {
      const torch::AutoGradMode with_gradients(true);
      optimizer.zero_grad();
      torch::Tensor loss = model->forward(input).pow(2).sum();
      loss.backward();
      return loss;
    });
  }
}

// Only LBFGS has any, and it is not copied: each step fills it before it reads it.
template <typename State>
State without_scratch(State state) {
  if constexpr (std::is_same_v<State, LBFGSParamState>) state.al(std::nullopt);
  return state;
}

template <typename State>
void expect_same_state(const Optimizer& actual, const Optimizer& expected) {
  ASSERT_EQ(actual.state().size(), expected.state().size());
  const auto& mine = actual.param_groups()[0].params();
  const auto& theirs = expected.param_groups()[0].params();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const auto state = actual.state().find(mine[i].unsafeGetTensorImpl());
    const auto wanted = expected.state().find(theirs[i].unsafeGetTensorImpl());
    ASSERT_EQ(state == actual.state().end(), wanted == expected.state().end()) << "parameter " << i;
    if (state == actual.state().end()) continue;
    EXPECT_TRUE(without_scratch(static_cast<const State&>(*state->second)) ==
                without_scratch(static_cast<const State&>(*wanted->second)));
  }
}

struct Steps {
  int root = 3;
  int others = 0;
};

// What the root has done, each rank does again by itself: its optimizer must end up like that.
template <typename Optim, typename Options, typename State>
void expect_state_of_root(const Options& root_options, const Options& other_options, const Steps& steps,
                          torch::ScalarType type = torch::kFloat32) {
  for (int root = 0; root < ranks(); ++root) {
    torch::nn::Linear expected_model = make_model(type);
    Optim expected(expected_model->parameters(), root_options);
    take_steps(expected, expected_model, steps.root);

    torch::nn::Linear model = make_model(type);
    const bool is_root = rank() == root;
    Optim optimizer(model->parameters(), is_root ? root_options : other_options);
    take_steps(optimizer, model, is_root ? steps.root : steps.others);
    const auto* weight_before = model->weight.unsafeGetTensorImpl();
    broadcast_parameters(world(), *model, {.root = root});
    broadcast_optimizer_state(world(), optimizer, {.root = root});

    EXPECT_EQ(model->weight.unsafeGetTensorImpl(), weight_before);
    EXPECT_EQ(optimizer.param_groups()[0].params()[0].unsafeGetTensorImpl(), weight_before);
    EXPECT_TRUE(static_cast<const Options&>(optimizer.param_groups()[0].options()) ==
                static_cast<const Options&>(expected.param_groups()[0].options()));
    EXPECT_TRUE(static_cast<const Options&>(optimizer.defaults()) == static_cast<const Options&>(expected.defaults()));
    expect_same_state<State>(optimizer, expected);

    take_steps(expected, expected_model, 2);
    take_steps(optimizer, model, 2);
    EXPECT_TRUE(torch::equal(model->weight, expected_model->weight)) << "goes on differently, root " << root;
    EXPECT_TRUE(torch::equal(model->bias, expected_model->bias));
  }
}

// The root has state that the others lack; all have some; the others have state that the root lacks.
template <typename Optim, typename Options, typename State>
void expect_state_of_root(const Options& root_options, const Options& other_options) {
  for (const Steps& steps : {Steps{3, 0}, Steps{3, 1}, Steps{0, 2}}) {
    expect_state_of_root<Optim, Options, State>(root_options, other_options, steps);
  }
  expect_state_of_root<Optim, Options, State>(root_options, other_options, {}, torch::kFloat64);
}

TEST(OptimizerState, Sgd) {
  expect_state_of_root<SGD, SGDOptions, SGDParamState>(
      SGDOptions(0.0625).momentum(0.5).weight_decay(0.125).nesterov(true),
      SGDOptions(0.5).momentum(0.25).dampening(0.5));
  expect_state_of_root<SGD, SGDOptions, SGDParamState>(SGDOptions(0.0625), SGDOptions(0.125).momentum(0.5));
}

TEST(OptimizerState, Adam) {
  expect_state_of_root<Adam, AdamOptions, AdamParamState>(
      AdamOptions(0.25).betas({0.5, 0.75}).eps(0.125).weight_decay(0.0625).amsgrad(true), AdamOptions(0.5));
  expect_state_of_root<Adam, AdamOptions, AdamParamState>(AdamOptions(0.5), AdamOptions(0.25).amsgrad(true));
}

TEST(OptimizerState, AdamW) {
  expect_state_of_root<AdamW, AdamWOptions, AdamWParamState>(
      AdamWOptions(0.25).betas({0.5, 0.75}).eps(0.125).weight_decay(0.0625).amsgrad(true), AdamWOptions(0.5));
}

TEST(OptimizerState, Adagrad) {
  expect_state_of_root<Adagrad, AdagradOptions, AdagradParamState>(
      AdagradOptions(0.25).lr_decay(0.5).weight_decay(0.125).initial_accumulator_value(2).eps(0.0625),
      AdagradOptions(0.5));
}

TEST(OptimizerState, RmsProp) {
  expect_state_of_root<RMSprop, RMSpropOptions, RMSpropParamState>(
      RMSpropOptions(0.25).alpha(0.5).eps(0.125).weight_decay(0.0625).momentum(0.5).centered(true),
      RMSpropOptions(0.5));
}

TEST(OptimizerState, Lbfgs) {
  expect_state_of_root<LBFGS, LBFGSOptions, LBFGSParamState>(
      LBFGSOptions(0.5).max_iter(4).max_eval(7).tolerance_grad(1e-5).tolerance_change(1e-6).history_size(3),
      LBFGSOptions(1));
  expect_state_of_root<LBFGS, LBFGSOptions, LBFGSParamState>(
      LBFGSOptions(0.5).max_iter(2).line_search_fn("strong_wolfe"), LBFGSOptions(1).max_iter(2));
}

TEST(OptimizerState, EveryParameterGroupHasItsOwnOptions) {
  torch::nn::Linear model = make_model();
  const int last = ranks() - 1;
  const auto options = [](int rank, double factor) {
    return std::make_unique<SGDOptions>(SGDOptions(factor * (rank + 1)).momentum(factor / (rank + 2)));
  };
  SGD optimizer(
      std::vector<OptimizerParamGroup>{{{model->weight}, options(rank(), 1)}, {{model->bias}, options(rank(), 0.5)}},
      SGDOptions(0.125 * (rank() + 1)));
  broadcast_optimizer_state(world(), optimizer, {.root = last});
  EXPECT_TRUE(static_cast<SGDOptions&>(optimizer.param_groups()[0].options()) == *options(last, 1));
  EXPECT_TRUE(static_cast<SGDOptions&>(optimizer.param_groups()[1].options()) == *options(last, 0.5));

  optimizer.add_param_group(OptimizerParamGroup({torch::zeros({2}, torch::requires_grad())}));
  EXPECT_EQ(optimizer.param_groups()[2].options().get_lr(), 0.125 * ranks()) << "groups that are added later, too";
}

TEST(OptimizerState, InsideADistributedOptimizer) {
  torch::nn::Linear model = make_model();
  DistributedOptimizer optimizer(
      world(), std::make_unique<SGD>(model->parameters(), SGDOptions(0.25 * (rank() + 1)).momentum(0.5)),
      model->named_parameters());
  const auto train = [&] {
    optimizer.zero_grad();
    model->forward(torch::full({1, 3}, rank() + 1.0)).sum().backward();
    optimizer.step();
  };
  train();
  broadcast_parameters(world(), *model);
  broadcast_optimizer_state(world(), optimizer);
  EXPECT_EQ(optimizer.inner().param_groups()[0].options().get_lr(), 0.25);
  train();
  EXPECT_EQ(sum_over(world(), model->bias.sum().item<double>()), ranks() * model->bias.sum().item<double>());
}

TEST(OptimizerState, OfAShardedOptimizerCanBeLoadedBeforeItsFirstStep) {
  torch::nn::Linear model = make_model();
  const auto make = [&] { return std::make_unique<SGD>(model->parameters(), SGDOptions(0.25).momentum(0.5)); };
  auto earlier = make();
  model->forward(torch::ones({1, 3})).sum().backward();
  if (rank() == 0) earlier->step();
  std::ostringstream saved;
  torch::save(*earlier, saved);
  model->zero_grad();

  DistributedOptimizer optimizer(world(), make(), model->named_parameters(), {.sharded = true});
  std::istringstream file(saved.str());
  if (rank() == 0) torch::load(optimizer.inner(), file);
  broadcast_parameters(world(), *model);
  broadcast_optimizer_state(world(), optimizer);
  const torch::Tensor before = model->bias.detach().clone();
  model->forward(torch::ones({1, 3})).sum().backward();
  optimizer.step();
  EXPECT_TRUE(torch::allclose(model->bias, before - 0.25 * 1.5));  // momentum of the earlier step
  EXPECT_THAT([&] { broadcast_optimizer_state(world(), optimizer); },
              testing::ThrowsMessage<UsageError>(testing::HasSubstr("call it before the first step")));
}

}  // namespace
}  // namespace fedrun
