// Every option of DistributedOptimizer against what one process gives on the whole batch.
#include <fedrun/core/error.h>
#include <fedrun/train/distributed_optimizer.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "support/rank_test.h"
#include "support/small_training.h"
#include "support/torch_device.h"

namespace fedrun {
namespace {

using test::flat;
using test::make_model;
using test::my_part;
using test::rank;
using test::ranks;
using test::relative_error;
using test::replicas_are_equal;
using test::whole_batch;
using test::world;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int steps = 8;

using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)>;

template <typename Optimizer, typename Options>
MakeOptimizer maker(Options options) {
  return [options](std::vector<torch::Tensor> parameters) {
    return std::make_unique<Optimizer>(std::move(parameters), options);
  };
}

MakeOptimizer sgd(double lr = 0.1) {
  return maker<torch::optim::SGD>(torch::optim::SGDOptions(lr).momentum(0.9).weight_decay(0.01));
}

torch::nn::Sequential train_alone(const MakeOptimizer& make_optimizer, int step_count = steps) {
  auto model = make_model();
  auto optimizer = make_optimizer(model->parameters());
  for (int step = 0; step < step_count; ++step) {
    const auto batch = whole_batch(step);
    optimizer->step([&] {
      const torch::AutoGradMode with_gradients(true);
      optimizer->zero_grad();
      torch::Tensor loss = batch.loss(model);
      loss.backward();
      return loss;
    });
  }
  return model;
}

torch::nn::Sequential train_together(const MakeOptimizer& make_optimizer, const DistributedOptimizerOptions& options) {
  auto model = make_model();
  DistributedOptimizer optimizer(world(), make_optimizer(model->parameters()), model->named_parameters(), options);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    my_part(whole_batch(step)).loss(model).backward();
    optimizer.step();
  }
  return model;
}

struct NamedOptimizer {
  std::string name;
  MakeOptimizer make;
};

class EveryOptimizer : public testing::TestWithParam<NamedOptimizer> {};

TEST_P(EveryOptimizer, OnSeveralRanksEqualsOneOnTheWholeBatch) {
  const auto together = train_together(GetParam().make, {});
  EXPECT_LE(relative_error(*together, *train_alone(GetParam().make)), 2e-5);
  EXPECT_TRUE(replicas_are_equal(*together));
}

INSTANTIATE_TEST_SUITE_P(
    OfTorch, EveryOptimizer,
    testing::Values(NamedOptimizer{"SGD", maker<torch::optim::SGD>(torch::optim::SGDOptions(0.1))},
                    NamedOptimizer{
                        "Nesterov",
                        maker<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9).nesterov(true))},
                    NamedOptimizer{"Adam", maker<torch::optim::Adam>(torch::optim::AdamOptions(0.01))},
                    NamedOptimizer{"AdamW", maker<torch::optim::AdamW>(torch::optim::AdamWOptions(0.01))},
                    NamedOptimizer{"Adagrad", maker<torch::optim::Adagrad>(torch::optim::AdagradOptions(0.05))},
                    NamedOptimizer{"RMSprop", maker<torch::optim::RMSprop>(torch::optim::RMSpropOptions(0.001))}),
    [](const auto& instance) { return instance.param.name; });

// The gradients of a window are those of the whole batch, in two passes.
void run_in_two_passes(torch::nn::Sequential& model, int step) {
  const auto mine = my_part(whole_batch(step));
  mine.part(0, 2).loss(model).backward();
  mine.part(1, 2).loss(model).backward();
}

TEST(OptimizerOptions, AveragesPasses) {
  auto model = make_model();
  DistributedOptimizer optimizer(world(), sgd()(model->parameters()), model->named_parameters(),
                                 {.backward_passes_per_step = 2, .accumulation = Accumulation::mean});
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    run_in_two_passes(model, step);
    optimizer.step();
  }
  EXPECT_LE(relative_error(*model, *train_alone(sgd())), 1e-5);
}

TEST(OptimizerOptions, AddsPassesUp) {
  auto model = test::here(torch::nn::Linear(torch::nn::LinearOptions(2, 1).bias(false)));
  DistributedOptimizer optimizer(world(), sgd()(model->parameters()), model->named_parameters(),
                                 {.backward_passes_per_step = 3});
  for (int window = 0; window < 2; ++window) {
    optimizer.zero_grad();
    for (int pass = 0; pass < 3; ++pass) model->forward(test::ones({1, 2})).sum().backward();
    EXPECT_EQ(optimizer.pending_passes(), 3);
    optimizer.synchronize();
    EXPECT_EQ(optimizer.pending_passes(), 0);
    EXPECT_TRUE(torch::equal(model->weight.grad(), test::full({1, 2}, 3.0F)));
  }
}

class PartialWindow : public testing::TestWithParam<Accumulation> {};

TEST_P(PartialWindow, IsFlushedByStep) {
  auto model = test::here(torch::nn::Linear(torch::nn::LinearOptions(2, 1).bias(false)));
  DistributedOptimizer optimizer(world(), sgd()(model->parameters()), model->named_parameters(),
                                 {.backward_passes_per_step = 4, .accumulation = GetParam()});
  for (const int passes : {4, 2, 1, 4}) {
    optimizer.zero_grad();
    for (int pass = 0; pass < passes; ++pass) model->forward(test::full({1, 2}, 2.0F)).sum().backward();
    EXPECT_EQ(optimizer.pending_passes(), passes);
    optimizer.synchronize();
    const double expected = GetParam() == Accumulation::mean ? 2 : 2 * passes;
    EXPECT_TRUE(torch::equal(model->weight.grad(), test::full({1, 2}, expected, torch::kFloat32))) << passes;
  }
}

INSTANTIATE_TEST_SUITE_P(By, PartialWindow, testing::Values(Accumulation::sum, Accumulation::mean));

TEST(OptimizerOptions, OnePassTooManyIsAnError) {
  auto model = test::here(torch::nn::Linear(2, 3));
  DistributedOptimizer optimizer(world(), sgd()(model->parameters()), model->named_parameters(),
                                 {.backward_passes_per_step = 2});
  const auto backward = [&] { model->forward(test::ones({1, 2})).sum().backward(); };
  backward();
  backward();
  EXPECT_THAT(backward, ThrowsMessage<UsageError>(HasSubstr("gradient number 3 before step(), but 2 backward passes")));
  optimizer.step();
}

TEST(OptimizerOptions, NoSyncAddsUpWithoutCommunication) {
  auto model = test::here(torch::nn::Linear(torch::nn::LinearOptions(2, 1).bias(false)));
  DistributedOptimizer optimizer(world(), sgd()(model->parameters()), model->named_parameters());
  const double mean_rank = (ranks() - 1) / 2.0;
  for (int window = 0; window < 3; ++window) {
    optimizer.zero_grad();
    {
      const auto guard = optimizer.no_sync();
      for (int pass = 0; pass < 2; ++pass) (model->forward(test::ones({1, 2})).sum() * rank()).backward();
      EXPECT_TRUE(torch::equal(model->weight.grad(), test::full({1, 2}, 2.0F * static_cast<float>(rank()))));
    }
    (model->forward(test::ones({1, 2})).sum() * rank()).backward();
    optimizer.synchronize();
    EXPECT_TRUE(torch::equal(model->weight.grad(), test::full({1, 2}, 3 * mean_rank, torch::kFloat32)));
  }
}

TEST(OptimizerOptions, StepReducesWhatNoSyncAddedUp) {
  auto model = test::here(torch::nn::Linear(torch::nn::LinearOptions(2, 1).bias(false)));
  DistributedOptimizer optimizer(world(), sgd()(model->parameters()), model->named_parameters());
  {
    const auto guard = optimizer.no_sync();
    (model->forward(test::ones({1, 2})).sum() * rank()).backward();
  }
  optimizer.step();
  EXPECT_TRUE(torch::equal(model->weight.grad(), test::full({1, 2}, (ranks() - 1) / 2.0, torch::kFloat32)));
}

TEST(OptimizerOptions, ZeroGradForgetsWhatNoSyncAddedUp) {
  auto first = test::here(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  auto second = test::here(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  torch::nn::Sequential model(first, second);
  DistributedOptimizer optimizer(world(), sgd()(model->parameters()), model->named_parameters());
  {
    const auto guard = optimizer.no_sync();
    first->forward(test::ones({1, 1})).sum().backward();
  }
  optimizer.zero_grad();
  second->forward(test::ones({1, 1})).sum().backward();
  optimizer.synchronize();
  EXPECT_FALSE(first->weight.grad().defined());
  EXPECT_EQ(second->weight.grad().item<float>(), 1);
}

TEST(OptimizerOptions, PredividesWithoutChangingTheResult) {
  EXPECT_LE(relative_error(*train_together(sgd(), {.gradient_predivide_factor = 4}), *train_alone(sgd())), 1e-5);
}

TEST(OptimizerOptions, PredividesAgainstOverflow) {
  auto model = test::here(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  DistributedOptimizer optimizer(world(), sgd()(model->parameters()), model->named_parameters(),
                                 {.gradient_predivide_factor = 16});
  (model->forward(test::ones({1, 1})).sum() * 3e38).backward();  // the plain sum of two would be infinite
  optimizer.synchronize();
  EXPECT_FLOAT_EQ(model->weight.grad().item<float>(), 3e38F);
}

class Compressed : public testing::TestWithParam<std::shared_ptr<Compression>> {};

TEST_P(Compressed, TrainingStaysClose) {
  const auto together = train_together(sgd(), {.compression = GetParam()});
  EXPECT_LE(relative_error(*together, *train_alone(sgd())), 5e-3);
  EXPECT_TRUE(replicas_are_equal(*together));
}

INSTANTIATE_TEST_SUITE_P(As, Compressed, testing::Values(Compression::none, Compression::fp16, Compression::bf16),
                         [](const auto& instance) { return instance.param->name(); });

// A compression of a user's own: sends the sign and remembers what that leaves out.
class SignsWithMemory final : public Compression {
 public:
  std::string name() const override { return "signs"; }
  std::unique_ptr<Work> reduce(Communicator& group, const GradientBucket& bucket,
                               const ReduceOptions& options) override {
    if (left_out_.size() <= bucket.index) left_out_.resize(bucket.index + 1);
    torch::Tensor gradients = bucket.flat();
    torch::Tensor& left_out = left_out_[bucket.index];
    if (left_out.defined()) gradients += left_out;
    const torch::Tensor sent = gradients.sign() * 0.01;
    left_out = gradients - sent;
    gradients.copy_(sent);
    ++calls;
    return group.allreduce_async(bucket.buffer, options);
  }
  int calls = 0;

 private:
  std::vector<torch::Tensor> left_out_;
};

TEST(OptimizerOptions, TakesACompressionOfTheUsersOwn) {
  const auto signs = std::make_shared<SignsWithMemory>();
  const auto model = train_together(sgd(0.5), {.compression = signs});
  EXPECT_EQ(signs->calls, steps);
  EXPECT_TRUE(replicas_are_equal(*model));
  auto start = make_model();
  auto trained = model;
  EXPECT_LT(whole_batch(0).loss(trained).item<double>(), whole_batch(0).loss(start).item<double>());
}

TEST(OptimizerOptions, GroupsByCountAndByListsGiveTheSame) {
  auto lists_model = make_model();
  const auto parameters = lists_model->parameters();
  DistributedOptimizer optimizer(world(), sgd()(parameters), lists_model->named_parameters(),
                                 {.groups = {{parameters[0], parameters[5]}, {parameters[2]}}});
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    my_part(whole_batch(step)).loss(lists_model).backward();
    optimizer.step();
  }
  EXPECT_EQ(optimizer.reducer().bucket_count(), 3U);  // two groups and the rest
  EXPECT_LE(relative_error(*lists_model, *train_alone(sgd())), 1e-5);
  EXPECT_TRUE(torch::equal(flat(*lists_model), flat(*train_together(sgd(), {.group_count = 2}))));
}

TEST(OptimizerOptions, BucketsFollowTheOrderOfTheFirstBackward) {
  // The last layer is used first, so its gradient comes last: the opposite of what its place in the list suggests.
  auto first = test::here(torch::nn::Linear(torch::nn::LinearOptions(4, 4).bias(false)));
  auto second = test::here(torch::nn::Linear(torch::nn::LinearOptions(4, 4).bias(false)));
  torch::nn::Sequential model(first, second);
  DistributedOptimizer optimizer(world(), sgd()(model->parameters()), model->named_parameters(),
                                 {.buckets = {.first_bytes = 1, .bytes = 1}});
  first->forward(second->forward(test::ones({1, 4}))).sum().backward();
  optimizer.step();
  ASSERT_EQ(optimizer.reducer().bucket_count(), 2U);
  EXPECT_THAT(optimizer.reducer().bucket(0).name, HasSubstr("bucket 0: 0.weight"));
  EXPECT_THAT(optimizer.reducer().bucket(1).name, HasSubstr("bucket 1: 1.weight"));
  // From the second backward on, gradients lie where they are reduced.
  optimizer.zero_grad();
  first->forward(second->forward(test::ones({1, 4}))).sum().backward();
  EXPECT_EQ(first->weight.grad().data_ptr(), optimizer.reducer().bucket(0).buffer.data);
  optimizer.step();
}

TEST(OptimizerOptions, ReducesOverAGroupOfRanks) {
  Communicator pair = world().split({.color = rank() / 2});
  auto model = test::here(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  DistributedOptimizer optimizer(pair, sgd()(model->parameters()), model->named_parameters(), {.op = ReduceOp::sum});
  (model->forward(test::ones({1, 1})).sum() * (rank() + 1)).backward();
  optimizer.synchronize();
  float expected = 0;
  for (int other = rank() / 2 * 2; other < std::min(ranks(), rank() / 2 * 2 + 2); ++other) {
    expected += static_cast<float>(other + 1);
  }
  EXPECT_EQ(model->weight.grad().item<float>(), expected);
}

TEST(OptimizerOptions, SkipSynchronizeStepsWithTheClippedGradients) {
  auto model = test::here(torch::nn::Linear(torch::nn::LinearOptions(2, 1).bias(false)));
  const torch::Tensor before = model->weight.detach().clone();
  DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 1.0),
                                 model->named_parameters());
  model->forward(test::ones({1, 2})).sum().backward();
  optimizer.synchronize();
  torch::nn::utils::clip_grad_value_(model->parameters(), 0.25);
  {
    const auto guard = optimizer.skip_synchronize();
    optimizer.step();
    EXPECT_TRUE(torch::equal(model->weight.detach(), before - 0.25));
    model->zero_grad();
    model->forward(test::ones({1, 2})).sum().backward();
    EXPECT_THAT([&] { optimizer.step(); }, ThrowsMessage<UsageError>(HasSubstr("call synchronize() first")));
  }
  optimizer.step();
}

TEST(OptimizerOptions, ClipsByTheNormOfTheReducedGradients) {
  const auto clipped_alone = [] {
    auto model = make_model();
    auto optimizer = sgd()(model->parameters());
    for (int step = 0; step < steps; ++step) {
      optimizer->zero_grad();
      whole_batch(step).loss(model).backward();
      torch::nn::utils::clip_grad_norm_(model->parameters(), 0.05);
      optimizer->step();
    }
    return model;
  }();
  for (const bool sharded : {false, true}) {
    auto model = make_model();
    DistributedOptimizer optimizer(world(), sgd()(model->parameters()), model->named_parameters(),
                                   {.sharded = sharded});
    for (int step = 0; step < steps; ++step) {
      optimizer.zero_grad();
      my_part(whole_batch(step)).loss(model).backward();
      EXPECT_GT(optimizer.clip_gradient_norm(0.05), 0.05);
      optimizer.step();
    }
    EXPECT_LE(relative_error(*model, *clipped_alone), 1e-5) << "sharded " << sharded;
  }
}

TEST(OptimizerOptions, CountsCommunicationTime) {
  auto model = make_model();
  DistributedOptimizer optimizer(world(), sgd()(model->parameters()), model->named_parameters());
  my_part(whole_batch(0)).loss(model).backward();
  optimizer.step();
  EXPECT_GT(optimizer.communication_seconds(), 0);
}

TEST(OptimizerOptions, ThatMakeNoSenseAreErrors) {
  auto model = test::here(torch::nn::Linear(2, 3));
  const auto build = [&](const DistributedOptimizerOptions& options) {
    return [&model, options] {
      DistributedOptimizer(world(), sgd()(model->parameters()), model->named_parameters(), options);
    };
  };
  const auto says = [](const char* text) { return ThrowsMessage<UsageError>(HasSubstr(text)); };
  EXPECT_THAT(build({.backward_passes_per_step = 0}), says("backward_passes_per_step 0 must be at least 1"));
  EXPECT_THAT(build({.gradient_predivide_factor = 0}), says("gradient_predivide_factor 0 must be"));
  EXPECT_THAT(build({.op = ReduceOp::sum, .gradient_predivide_factor = 2}), says("goes with average, not with sum"));
  EXPECT_THAT(build({.compression = nullptr}), says("use Compression::none"));
  EXPECT_THAT(build({.group_count = 3}), says("group_count 3 must be between 0 (no groups) and 2"));
  EXPECT_THAT(build({.group_count = 1, .groups = {{model->weight}}}), says("not both"));
  EXPECT_THAT(build({.groups = {{model->weight}, {model->weight}}}),
              says("'weight' is in group 0 and again in group 1"));
  EXPECT_THAT(build({.groups = {{test::ones({2})}}}), says("number 0 of group 0 is not a parameter"));
  EXPECT_THAT(build({.groups = {{}}}), says("group 0 has no parameters"));
  EXPECT_THAT(build({.op = ReduceOp::adasum, .sharded = true}), says("sharded cannot be on"));
  EXPECT_THAT(build({.op = ReduceOp::adasum, .compression = std::make_shared<SignsWithMemory>()}),
              says("'signs' cannot be used with Adasum"));
}

TEST(OptimizerOptions, ThatDifferBetweenRanksAreErrors) {
  if (ranks() == 1) GTEST_SKIP() << "one rank cannot disagree";
  auto model = test::here(torch::nn::Linear(2, 3));
  const DistributedOptimizerOptions options{.compression = rank() == 0 ? Compression::fp16 : Compression::none};
  EXPECT_THAT([&] { DistributedOptimizer(world(), sgd()(model->parameters()), model->named_parameters(), options); },
              ThrowsMessage<MismatchError>(HasSubstr("compression fp16")));
}

}  // namespace
}  // namespace fedrun
