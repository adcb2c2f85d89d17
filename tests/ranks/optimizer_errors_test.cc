// What users do wrong with a DistributedOptimizer, and what it says.
#include <fedrun/core/error.h>
#include <fedrun/train/distributed_optimizer.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/rank_test.h"

namespace fedrun {
namespace {

using test::world;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::unique_ptr<torch::optim::Optimizer> sgd(const torch::nn::Module& module) {
  return std::make_unique<torch::optim::SGD>(module.parameters(), 0.1);
}

TEST(OptimizerErrors, ParameterWithoutAName) {
  torch::nn::Linear model(2, 3);
  auto names = model->named_parameters();
  names.erase("bias");
  EXPECT_THAT([&] { DistributedOptimizer(world(), sgd(*model), names); },
              ThrowsMessage<UsageError>(HasSubstr("no name for parameter 1 of the optimizer's group 0, a f32[3]")));
}

TEST(OptimizerErrors, ParameterNamedTwice) {
  torch::nn::Linear model(2, 3);
  auto names = model->named_parameters();
  names.insert("again", model->weight);
  EXPECT_THAT([&] { DistributedOptimizer(world(), sgd(*model), names); },
              ThrowsMessage<UsageError>(HasSubstr("lists one parameter twice, as 'weight' and as 'again'")));
}

TEST(OptimizerErrors, SecondBackwardBeforeStep) {
  torch::nn::Linear model(2, 3);
  DistributedOptimizer optimizer(world(), sgd(*model), model->named_parameters());
  model->forward(torch::ones({1, 2})).sum().backward();
  EXPECT_THAT(
      [&] {
        model->forward(torch::ones({1, 2})).sum().backward();
      },
      ThrowsMessage<UsageError>(HasSubstr("received gradient number 2 before step()")));
  optimizer.step();  // and it still works
}

TEST(OptimizerErrors, ZeroGradWhileReducing) {
  torch::nn::Linear model(2, 3);
  DistributedOptimizer optimizer(world(), sgd(*model), model->named_parameters());
  model->forward(torch::ones({1, 2})).sum().backward();
  EXPECT_THAT([&] { optimizer.zero_grad(); }, ThrowsMessage<UsageError>(HasSubstr("before step()")));
  optimizer.step();
  optimizer.zero_grad();
}

TEST(OptimizerErrors, TwoOptimizersForOneParameter) {
  torch::nn::Linear model(2, 3);
  DistributedOptimizer optimizer(world(), sgd(*model), model->named_parameters());
  EXPECT_THAT([&] { DistributedOptimizer(world(), sgd(*model), model->named_parameters()); },
              ThrowsMessage<UsageError>(HasSubstr("'weight' already belongs to another DistributedOptimizer")));
}

TEST(OptimizerErrors, OperationsThatMakeNoSense) {
  torch::nn::Linear model(2, 3);
  EXPECT_THROW(DistributedOptimizer(world(), sgd(*model), model->named_parameters(), {.op = ReduceOp::max}),
               UsageError);
  EXPECT_THROW(DistributedOptimizer(world(), nullptr, model->named_parameters()), UsageError);
  EXPECT_THROW(DistributedOptimizer(world(), sgd(*model), model->named_parameters(), {.buckets = {.first_bytes = 0}}),
               UsageError);
}

TEST(OptimizerErrors, ModelsThatDifferBetweenRanks) {
  if (world().size() == 1) GTEST_SKIP() << "one rank cannot disagree";
  torch::nn::Linear model(2, world().rank() == 0 ? 3 : 4);
  EXPECT_THAT([&] { DistributedOptimizer(world(), sgd(*model), model->named_parameters()); },
              ThrowsMessage<MismatchError>(HasSubstr("rank 0 has weight f32[3, 2], rank 1 has weight f32[4, 2]")));
}

}  // namespace
}  // namespace fedrun
