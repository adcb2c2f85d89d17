// A sharded optimizer must give the bits of the whole one, with a part of its memory on each rank.
#include <fedrun/core/error.h>
#include <fedrun/train/distributed_optimizer.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "support/rank_test.h"
#include "support/small_training.h"
#include "support/torch_device.h"

namespace fedrun {
namespace {

using test::flat;
using test::make_model;
using test::my_part;
using test::ranks;
using test::replicas_are_equal;
using test::whole_batch;
using test::world;
using testing::HasSubstr;
using testing::ThrowsMessage;

using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(const torch::nn::Sequential&)>;

// Weights and biases in groups of their own, with other options.
template <typename Optimizer, typename Options>
MakeOptimizer in_two_groups(const Options& weights, const Options& biases) {
  return [weights, biases](const torch::nn::Sequential& model) {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(std::vector<torch::Tensor>{}, std::make_unique<Options>(weights));
    groups.emplace_back(std::vector<torch::Tensor>{}, std::make_unique<Options>(biases));
    for (const auto& parameter : model->parameters()) groups[parameter.dim() > 1 ? 0 : 1].params().push_back(parameter);
    return std::make_unique<Optimizer>(groups, weights);
  };
}

struct NamedOptimizer {
  std::string name;
  MakeOptimizer make;
  int tensors_of_state;  // for each parameter
};

void train(DistributedOptimizer& optimizer, torch::nn::Sequential& model, int first_step, int steps) {
  for (int step = first_step; step < first_step + steps; ++step) {
    optimizer.zero_grad();
    my_part(whole_batch(step)).loss(model).backward();
    optimizer.step();
  }
}

std::int64_t elements_of_state(torch::optim::Optimizer& optimizer) {
  std::int64_t elements = 0;
  const auto count = [&](const torch::Tensor& tensor) { elements += tensor.defined() ? tensor.numel() : 0; };
  for (const auto& [_, state] : optimizer.state()) {
    if (const auto* sgd = dynamic_cast<torch::optim::SGDParamState*>(state.get())) count(sgd->momentum_buffer());
    if (const auto* adam = dynamic_cast<torch::optim::AdamParamState*>(state.get())) {
      count(adam->exp_avg());
      count(adam->exp_avg_sq());
    }
    if (const auto* adamw = dynamic_cast<torch::optim::AdamWParamState*>(state.get())) {
      count(adamw->exp_avg());
      count(adamw->exp_avg_sq());
      count(adamw->max_exp_avg_sq());
    }
    if (const auto* rmsprop = dynamic_cast<torch::optim::RMSpropParamState*>(state.get())) {
      count(rmsprop->square_avg());
      count(rmsprop->momentum_buffer());
    }
  }
  return elements;
}

class ShardedStepOf : public testing::TestWithParam<NamedOptimizer> {};

TEST_P(ShardedStepOf, GivesTheBitsOfTheWholeOne) {
  auto whole = make_model();
  DistributedOptimizer whole_optimizer(world(), GetParam().make(whole), whole->named_parameters());
  train(whole_optimizer, whole, 0, 8);
  auto parts = make_model();
  DistributedOptimizer parts_optimizer(world(), GetParam().make(parts), parts->named_parameters(), {.sharded = true});
  train(parts_optimizer, parts, 0, 8);
  EXPECT_TRUE(torch::equal(flat(*whole), flat(*parts)));
  EXPECT_TRUE(replicas_are_equal(*parts));
  EXPECT_GT((flat(*parts) - flat(*make_model())).abs().max().item<double>(), 1e-4);
}

TEST_P(ShardedStepOf, DividesTheMemory) {
  auto model = make_model();
  DistributedOptimizer optimizer(world(), GetParam().make(model), model->named_parameters(), {.sharded = true});
  train(optimizer, model, 0, 2);
  const std::int64_t mine = elements_of_state(optimizer.inner());
  const std::int64_t parameters = flat(*model).numel();
  EXPECT_EQ(test::sum_over(world(), static_cast<double>(mine)),
            static_cast<double>(parameters * GetParam().tensors_of_state));
  EXPECT_LE(mine, GetParam().tensors_of_state * (parameters / ranks() + 128));
}

TEST_P(ShardedStepOf, GoesOnWithTheStateThatTheOptimizerHas) {
  const auto train_before = [&](torch::nn::Sequential& model) {
    auto optimizer = GetParam().make(model);
    for (int step = 0; step < 3; ++step) {
      optimizer->zero_grad();
      whole_batch(step).loss(model).backward();
      optimizer->step();
    }
    model->zero_grad();
    return optimizer;
  };
  auto whole = make_model();
  DistributedOptimizer whole_optimizer(world(), train_before(whole), whole->named_parameters());
  train(whole_optimizer, whole, 3, 3);
  auto parts = make_model();
  DistributedOptimizer parts_optimizer(world(), train_before(parts), parts->named_parameters(), {.sharded = true});
  train(parts_optimizer, parts, 3, 3);
  EXPECT_TRUE(torch::equal(flat(*whole), flat(*parts)));
}

INSTANTIATE_TEST_SUITE_P(
    Optimizer, ShardedStepOf,
    testing::Values(
        NamedOptimizer{"SGD",
                       in_two_groups<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01),
                                                        torch::optim::SGDOptions(0.2).momentum(0.5)),
                       1},
        NamedOptimizer{"Adam",
                       in_two_groups<torch::optim::Adam>(torch::optim::AdamOptions(0.01).weight_decay(0.1),
                                                         torch::optim::AdamOptions(0.02)),
                       2},
        NamedOptimizer{"AdamW",
                       in_two_groups<torch::optim::AdamW>(torch::optim::AdamWOptions(0.01).amsgrad(true),
                                                          torch::optim::AdamWOptions(0.02).amsgrad(true)),
                       3},
        NamedOptimizer{"RMSprop",
                       in_two_groups<torch::optim::RMSprop>(torch::optim::RMSpropOptions(0.001).momentum(0.9),
                                                            torch::optim::RMSpropOptions(0.002).momentum(0.5)),
                       2}),
    [](const auto& instance) { return instance.param.name; });

TEST(ShardedStep, CutsParametersThatAreLargerThanAPiece) {
  const auto train_large = [](bool sharded) {
    torch::manual_seed(1);
    auto model = test::here(torch::nn::Linear(700, 333));
    DistributedOptimizer optimizer(
        world(), std::make_unique<torch::optim::SGD>(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)),
        model->named_parameters(), {.sharded = sharded});
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      model->forward(test::randn({4, 700})).square().mean().backward();
      optimizer.step();
    }
    return flat(*model);
  };
  EXPECT_TRUE(torch::equal(train_large(false), train_large(true)));
}

TEST(ShardedStep, CutsTheStateOfLargeParameters) {
  const auto go_on = [](bool sharded) {
    torch::manual_seed(1);
    auto model = test::here(torch::nn::Linear(700, 333));
    const auto backward = [&] { model->forward(test::randn({4, 700})).square().mean().backward(); };
    auto plain = std::make_unique<torch::optim::Adam>(model->parameters());
    backward();
    plain->step();
    DistributedOptimizer optimizer(world(), std::move(plain), model->named_parameters(), {.sharded = sharded});
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      backward();
      optimizer.step();
    }
    return flat(*model);
  };
  EXPECT_TRUE(torch::equal(go_on(false), go_on(true)));
}

TEST(ShardedStep, TrainsEmbeddingsWithSparseGradients) {
  if (test::on_gpu()) GTEST_SKIP() << "the stand-in for a GPU has no sparse tensors";
  const auto train_embedding = [](bool sharded) {
    torch::manual_seed(5);
    torch::nn::Embedding model(torch::nn::EmbeddingOptions(40, 8).sparse(true));
    DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 0.1),
                                   model->named_parameters(), {.sharded = sharded});
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      model->forward(torch::tensor({step, test::rank() + 7, 39})).square().sum().backward();
      optimizer.step();
    }
    return flat(*model);
  };
  EXPECT_TRUE(torch::allclose(train_embedding(false), train_embedding(true), 1e-6, 1e-7));
}

TEST(ShardedStep, ShowsNansInTheNorm) {
  auto model = make_model();
  DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 0.1),
                                 model->named_parameters(), {.sharded = true});
  (model->parameters()[0].sum() * std::numeric_limits<double>::quiet_NaN()).backward();
  EXPECT_TRUE(std::isnan(optimizer.clip_gradient_norm(1, std::numeric_limits<double>::infinity())));
}

TEST(ShardedStep, LeavesUnusedAndFrozenParametersAlone) {
  auto model = make_model();
  model->parameters()[0].set_requires_grad(false);
  const torch::Tensor frozen = model->parameters()[0].clone();
  DistributedOptimizer optimizer(
      world(),
      std::make_unique<torch::optim::SGD>(model->parameters(), torch::optim::SGDOptions(0.1).weight_decay(0.5)),
      model->named_parameters(), {.sharded = true});
  train(optimizer, model, 0, 2);
  EXPECT_TRUE(torch::equal(model->parameters()[0], frozen));
  model->parameters()[0].set_requires_grad(true);
  train(optimizer, model, 2, 2);
  EXPECT_FALSE(torch::equal(model->parameters()[0], frozen));
  EXPECT_TRUE(replicas_are_equal(*model));
}

TEST(ShardedStep, AccumulatesAndCompresses) {
  const auto accumulate = [](bool sharded) {
    auto model = make_model();
    DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::Adam>(model->parameters()),
                                   model->named_parameters(),
                                   {.compression = Compression::bf16,
                                    .backward_passes_per_step = 2,
                                    .accumulation = Accumulation::mean,
                                    .sharded = sharded});
    for (int step = 0; step < 4; ++step) {
      optimizer.zero_grad();
      my_part(whole_batch(step)).part(0, 2).loss(model).backward();
      my_part(whole_batch(step)).part(1, 2).loss(model).backward();
      optimizer.step();
    }
    return flat(*model);
  };
  EXPECT_TRUE(torch::allclose(accumulate(false), accumulate(true), 1e-3, 1e-5));
}

TEST(ShardedStep, LetsParametersOutliveTheOptimizer) {
  auto model = make_model();
  {
    DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 0.1),
                                   model->named_parameters(), {.sharded = true});
    train(optimizer, model, 0, 1);
  }
  EXPECT_TRUE(flat(*model).isfinite().all().item<bool>());
  EXPECT_TRUE(whole_batch(0).loss(model).isfinite().item<bool>());
}

TEST(ShardedStep, RefusesOptimizersThatLookAtWholeParameters) {
  auto model = make_model();
  EXPECT_THAT(
      [&] {
        DistributedOptimizer(world(), std::make_unique<torch::optim::LBFGS>(model->parameters()),
                             model->named_parameters(), {.sharded = true});
      },
      ThrowsMessage<UsageError>(HasSubstr("use SGD, Adam, AdamW or RMSprop")));
}

}  // namespace
}  // namespace fedrun
