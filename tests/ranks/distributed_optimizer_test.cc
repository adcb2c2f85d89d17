// Training on several ranks must give what one process gives on the whole batch.
#include <fedrun/train/broadcast.h>
#include <fedrun/train/distributed_optimizer.h>
#include <gtest/gtest.h>

#include <functional>

#include "support/rank_test.h"
#include "support/small_training.h"
#include "support/torch_device.h"

namespace fedrun {
namespace {

using test::Batch;
using test::flat;
using test::make_model;
using test::my_part;
using test::relative_error;
using test::replicas_are_equal;
using test::whole_batch;
using test::world;

using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)>;

std::unique_ptr<torch::optim::Optimizer> make_sgd(std::vector<torch::Tensor> parameters) {
  return std::make_unique<torch::optim::SGD>(std::move(parameters), torch::optim::SGDOptions(0.1).momentum(0.9));
}
std::unique_ptr<torch::optim::Optimizer> make_adam(std::vector<torch::Tensor> parameters) {
  return std::make_unique<torch::optim::Adam>(std::move(parameters), torch::optim::AdamOptions(0.01));
}

constexpr int steps = 20;

torch::nn::Sequential train_alone(const MakeOptimizer& make_optimizer) {
  auto model = make_model();
  auto optimizer = make_optimizer(model->parameters());
  for (int step = 0; step < steps; ++step) {
    const Batch batch = whole_batch(step);
    optimizer->zero_grad();
    torch::cross_entropy_loss(model->forward(batch.input), batch.target).backward();
    optimizer->step();
  }
  return model;
}

torch::nn::Sequential train_together(const MakeOptimizer& make_optimizer, const DistributedOptimizerOptions& options,
                                     bool set_to_none = true) {
  auto model = make_model();
  DistributedOptimizer optimizer(world(), make_optimizer(model->parameters()), model->named_parameters(), options);
  for (int step = 0; step < steps; ++step) {
    const Batch batch = my_part(whole_batch(step));
    optimizer.zero_grad(set_to_none);
    torch::cross_entropy_loss(model->forward(batch.input), batch.target).backward();
    optimizer.step();
  }
  return model;
}

class OneRankEqualsMany : public testing::TestWithParam<bool> {};

TEST_P(OneRankEqualsMany, WithSgd) {
  EXPECT_LE(relative_error(*train_together(make_sgd, {}, GetParam()), *train_alone(make_sgd)), 1e-5);
}

TEST_P(OneRankEqualsMany, WithAdam) {
  EXPECT_LE(relative_error(*train_together(make_adam, {}, GetParam()), *train_alone(make_adam)), 1e-5);
}

TEST_P(OneRankEqualsMany, WithABucketForEveryParameter) {
  const DistributedOptimizerOptions options{.buckets = {.first_bytes = 1, .bytes = 1}};
  EXPECT_LE(relative_error(*train_together(make_sgd, options, GetParam()), *train_alone(make_sgd)), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(SetToNone, OneRankEqualsMany, testing::Bool());

TEST(DistributedOptimizer, TrainsAtAll) {
  // Guards the comparisons above against two models that both stand still.
  EXPECT_GT(relative_error(*train_alone(make_sgd), *make_model()), 0.01);
}

TEST(DistributedOptimizer, KeepsReplicasBitwiseEqual) {
  EXPECT_TRUE(replicas_are_equal(*train_together(make_sgd, {})));
}

TEST(DistributedOptimizer, RepeatsARunBitwise) {
  EXPECT_TRUE(torch::equal(flat(*train_together(make_sgd, {})), flat(*train_together(make_sgd, {}))));
}

TEST(DistributedOptimizer, SumsOnRequest) {
  auto model = test::here(torch::nn::Linear(torch::nn::LinearOptions(2, 1).bias(false)));
  DistributedOptimizer optimizer(world(), make_sgd(model->parameters()), model->named_parameters(),
                                 {.op = ReduceOp::sum});
  model->forward(test::ones({1, 2})).sum().backward();
  optimizer.synchronize();
  EXPECT_TRUE(torch::equal(model->weight.grad(), test::full({1, 2}, world().size(), torch::kFloat32)));
}

TEST(DistributedOptimizer, HandsReducedGradientsOutForClipping) {
  auto model = test::here(torch::nn::Linear(torch::nn::LinearOptions(2, 1).bias(false)));
  broadcast_parameters(world(), *model);
  const torch::Tensor before = model->weight.detach().clone();
  DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 1.0),
                                 model->named_parameters());
  // Rank r has the gradient (r, r), so the mean is (n - 1) / 2 in both places.
  (model->forward(test::ones({1, 2})).sum() * world().rank()).backward();
  optimizer.synchronize();
  const double mean = (world().size() - 1) / 2.0;
  EXPECT_TRUE(torch::equal(model->weight.grad(), test::full({1, 2}, mean, torch::kFloat32)));
  model->weight.mutable_grad().fill_(0.25);
  optimizer.step();
  EXPECT_TRUE(torch::equal(model->weight.detach(), before - 0.25));
}

TEST(DistributedOptimizer, AllowsGraphsThatDifferBetweenRanks) {
  // Even ranks use the first layer, odd ranks the second.
  auto first = test::here(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  auto second = test::here(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  torch::nn::Sequential model(first, second);
  DistributedOptimizer optimizer(world(), make_sgd(model->parameters()), model->named_parameters(),
                                 {.buckets = {.first_bytes = 1, .bytes = 1}});
  const int odd_ranks = world().size() / 2;
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    (world().rank() % 2 == 0 ? first : second)->forward(test::ones({1, 1})).sum().backward();
    optimizer.synchronize();
    const auto ranks = static_cast<double>(world().size());
    EXPECT_FLOAT_EQ(first->weight.grad().item<float>(), static_cast<float>((ranks - odd_ranks) / ranks));
    if (odd_ranks > 0) {
      EXPECT_FLOAT_EQ(second->weight.grad().item<float>(), static_cast<float>(odd_ranks / ranks));
    }
    optimizer.step();
  }
}

TEST(DistributedOptimizer, KeepsGradientsInTheParametersLayout) {
  auto model = test::here(torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 4, 3)));
  {
    const torch::NoGradGuard no_grad;
    model->weight.set_data(model->weight.contiguous(torch::MemoryFormat::ChannelsLast));
  }
  DistributedOptimizer optimizer(world(), make_sgd(model->parameters()), model->named_parameters());
  model->forward(test::ones({1, 4, 5, 5})).sum().backward();
  EXPECT_EQ(model->weight.grad().strides(), model->weight.strides());
  optimizer.step();
  EXPECT_EQ(model->weight.grad().strides(), model->weight.strides());
}

TEST(DistributedOptimizer, LeavesFrozenParametersAlone) {
  auto model = make_model();
  model->parameters()[0].set_requires_grad(false);
  const torch::Tensor frozen = model->parameters()[0].clone();
  DistributedOptimizer optimizer(world(), make_sgd(model->parameters()), model->named_parameters());
  const Batch batch = my_part(whole_batch(0));
  torch::cross_entropy_loss(model->forward(batch.input), batch.target).backward();
  optimizer.step();
  EXPECT_TRUE(torch::equal(model->parameters()[0], frozen));
  EXPECT_FALSE(model->parameters()[0].grad().defined());
}

TEST(DistributedOptimizer, RunsClosures) {
  auto model = make_model();
  DistributedOptimizer optimizer(
      world(), std::make_unique<torch::optim::LBFGS>(model->parameters(), torch::optim::LBFGSOptions(0.1).max_iter(5)),
      model->named_parameters());
  const Batch batch = my_part(whole_batch(0));
  const auto closure = [&] {
    optimizer.zero_grad();
    torch::Tensor loss = torch::cross_entropy_loss(model->forward(batch.input), batch.target);
    loss.backward();
    return loss;
  };
  const double first = optimizer.step(closure).item<double>();
  for (int i = 0; i < 3; ++i) optimizer.step(closure);
  EXPECT_TRUE(replicas_are_equal(*model));
  EXPECT_LT(torch::cross_entropy_loss(model->forward(batch.input), batch.target).item<double>(), first);
}

TEST(DistributedOptimizer, LetsGradientsOutliveIt) {
  auto model = make_model();
  {
    DistributedOptimizer optimizer(world(), make_sgd(model->parameters()), model->named_parameters());
    model->forward(test::ones({1, 10})).sum().backward();
    optimizer.step();
  }
  EXPECT_TRUE(model->parameters()[0].grad().isfinite().all().item<bool>());
  model->zero_grad();
  model->forward(test::ones({1, 10})).sum().backward();  // its hooks are gone as well
  EXPECT_TRUE(model->parameters()[0].grad().isfinite().all().item<bool>());
}

}  // namespace
}  // namespace fedrun
