// Compression with error feedback: what 16 bits leave out of one step's gradients arrives with those of later steps.
#include <fedrun/core/error.h>
#include <fedrun/train/distributed_optimizer.h>
#include <fedrun/train/join_scope.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "support/rank_test.h"
#include "support/small_training.h"

namespace fedrun {
namespace {

using test::here;
using test::make_model;
using test::my_part;
using test::on_gpu;
using test::ones;
using test::process;
using test::rank;
using test::ranks;
using test::relative_error;
using test::replicas_are_equal;
using test::whole_batch;
using test::world;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double smallest_f16 = 0x1p-24;

// Between hosts; NCCL sends them in 16 bits between all ranks.
bool travels() { return ranks() > 1 && (on_gpu() || process().env().backend == BackendChoice::mpi); }

constexpr int parameters = 10'000;  // more than travels together with the call, which is not rounded

// The sum of the averages of what the ranks' gradients are, over so many steps.
double sum_of_steps(int steps, double gradient, const DistributedOptimizerOptions& options) {
  auto model = here(torch::nn::Linear(torch::nn::LinearOptions(parameters, 1).bias(false)));
  DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 1.0),
                                 model->named_parameters(), options);
  double sum = 0;
  for (int step = 0; step < steps; ++step) {
    for (int pass = 0; pass < options.backward_passes_per_step; ++pass) {
      (model->forward(ones({1, parameters})).sum() * gradient).backward();
    }
    optimizer.synchronize();
    sum += model->weight.grad()[0][0].item<double>();
    optimizer.step();
    optimizer.zero_grad();
  }
  return sum;
}

// Far below the smallest f16.
TEST(ErrorFeedback, SmallGradientsArriveInTheEnd) {
  const double gradient = 1e-9 * (rank() + 1);
  const double expected = 500 * 1e-9 * (ranks() + 1) / 2;
  const double arrived = sum_of_steps(500, gradient, {.compression = Compression::fp16_with_feedback()});
  EXPECT_NEAR(arrived, expected, ranks() * smallest_f16 / 2);
  EXPECT_GT(arrived, 0);
  if (travels()) {
    EXPECT_EQ(sum_of_steps(500, gradient, {.compression = Compression::fp16}), 0);
  }
}

// Between two f16, nearer to 1: rounding alone would lose it each time.
TEST(ErrorFeedback, SmallPartsOfLargeGradientsArriveInTheEnd) {
  const double gradient = 1 + 0x1p-13;
  const int steps = 256;
  const double arrived = sum_of_steps(steps, gradient, {.compression = Compression::fp16_with_feedback()});
  // Sums of a power of two of equal f16 are f16; others are rounded once more on their way, each time.
  const bool is_exact = !travels() || std::has_single_bit(static_cast<unsigned>(ranks()));
  EXPECT_NEAR(arrived, steps * gradient, is_exact ? 0x1p-10 : steps * 0x1p-10);
  if (travels() && is_exact) {
    EXPECT_EQ(sum_of_steps(steps, gradient, {.compression = Compression::fp16}), steps);
  }
}

TEST(ErrorFeedback, ScalesBeforeItRounds) {
  const double gradient = 1e-9;
  const double expected = 300 * gradient;
  EXPECT_NEAR(sum_of_steps(300, gradient * (rank() == 0 ? ranks() : 0),
                           {.op = ReduceOp::sum, .compression = Compression::fp16_with_feedback()}),
              expected * ranks(), ranks() * smallest_f16 / 2);
  EXPECT_NEAR(
      sum_of_steps(300, gradient, {.compression = Compression::fp16_with_feedback(), .gradient_predivide_factor = 8}),
      expected, ranks() * smallest_f16 / 2);
  EXPECT_NEAR(sum_of_steps(300, gradient,
                           {.compression = Compression::fp16_with_feedback(),
                            .backward_passes_per_step = 3,
                            .accumulation = Accumulation::mean}),
              expected, ranks() * smallest_f16 / 2);
}

torch::nn::Sequential train(const DistributedOptimizerOptions& options) {
  auto model = make_model();
  DistributedOptimizer optimizer(
      world(), std::make_unique<torch::optim::SGD>(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)),
      model->named_parameters(), options);
  for (int step = 0; step < 8; ++step) {
    for (int pass = 0; pass < options.backward_passes_per_step; ++pass) {
      my_part(whole_batch(step)).part(pass, options.backward_passes_per_step).loss(model).backward();
    }
    optimizer.step();
    optimizer.zero_grad();
  }
  return model;
}

TEST(ErrorFeedback, TrainingStaysCloseAndReplicasEqual) {
  const auto exact = train({});
  for (const bool is_sharded : {false, true}) {
    for (const auto& compression : {Compression::fp16_with_feedback(), Compression::bf16_with_feedback()}) {
      const auto model = train({.compression = compression, .group_count = 2, .sharded = is_sharded});
      EXPECT_LE(relative_error(*model, *exact), 5e-3) << compression->name();
      EXPECT_TRUE(replicas_are_equal(*model)) << compression->name();
    }
  }
  const auto accumulated = train({.compression = Compression::bf16_with_feedback(),
                                  .backward_passes_per_step = 2,
                                  .accumulation = Accumulation::mean});
  EXPECT_LE(relative_error(*accumulated, *exact), 5e-3);
  EXPECT_TRUE(replicas_are_equal(*accumulated));
}

// Whole and sharded steps round the same contributions.
TEST(ErrorFeedback, ShardedStepsGiveTheSameBits) {
  const auto whole = train({.compression = Compression::fp16_with_feedback()});
  const auto sharded = train({.compression = Compression::fp16_with_feedback(), .sharded = true});
  EXPECT_TRUE(torch::equal(test::flat(*whole), test::flat(*sharded)));
}

// One object for two optimizers, and for one that plans its buckets anew because ranks have joined.
TEST(ErrorFeedback, KnowsBucketsApart) {
  const auto shared = Compression::bf16_with_feedback();
  const auto one = train({.compression = shared});
  const auto other = train({.compression = shared});
  EXPECT_TRUE(torch::equal(test::flat(*one), test::flat(*other)));

  auto model = here(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  torch::nn::init::zeros_(model->weight);
  DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 1.0),
                                 model->named_parameters(), {.compression = shared});
  for (int epoch = 1; epoch <= 2; ++epoch) {
    join_scope(optimizer, *model, [&] {
      for (int step = 0; step <= rank(); ++step) {
        optimizer.zero_grad();
        (model->forward(ones({1, 1})).sum() * (rank() + 1)).backward();
        optimizer.step();
      }
    });
    double expected = 0;  // step s has ranks s to n - 1, whose mean gradient is (s + n + 1) / 2
    for (int step = 0; step < ranks(); ++step) expected -= (step + ranks() + 1) / 2.0;
    EXPECT_NEAR(model->weight.item<double>(), epoch * expected, -expected * 0x1p-6);
    EXPECT_TRUE(replicas_are_equal(*model));
  }
}

// An overflow is seen, as without feedback, and does not stay.
TEST(ErrorFeedback, AnInfiniteGradientIsSeenOnce) {
  auto model = here(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 1.0),
                                 model->named_parameters(), {.compression = Compression::fp16_with_feedback()});
  for (const double gradient : {1e9, 2.0}) {
    (model->forward(ones({1, 1})).sum() * gradient).backward();
    optimizer.synchronize();
    const auto reduced = model->weight.grad().item<double>();
    EXPECT_EQ(std::isinf(reduced), gradient > 1e6);
    if (gradient == 2.0) {
      EXPECT_NEAR(reduced, 2, 0x1p-9);
    }
    torch::NoGradGuard no_grad;
    model->weight.mutable_grad().zero_();
    optimizer.step();
    model->weight.zero_();
    optimizer.zero_grad();
  }
}

TEST(ErrorFeedback, IsComparedByTheRanksAndRefusedByAdasum) {
  const auto build = [](const DistributedOptimizerOptions& options) {
    auto model = make_model();
    DistributedOptimizer(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 1.0),
                         model->named_parameters(), options);
  };
  EXPECT_THAT([&] { build({.op = ReduceOp::adasum, .compression = Compression::fp16_with_feedback()}); },
              ThrowsMessage<UsageError>(HasSubstr("compression 'fp16-feedback' cannot be used with Adasum")));
  if (ranks() == 1) return;
  EXPECT_THAT([&] { build({.compression = rank() == 0 ? Compression::fp16_with_feedback() : Compression::fp16}); },
              ThrowsMessage<MismatchError>(HasSubstr("compression fp16-feedback")));
}

}  // namespace
}  // namespace fedrun
