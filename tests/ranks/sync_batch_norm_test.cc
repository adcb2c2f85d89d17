// SyncBatchNorm on every rank's part of a batch, against Torch's BatchNorm on the whole of it.
#include <fedrun/train/sync_batch_norm.h>
#include <fedrun/train/tensor_collectives.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "support/error_text.h"
#include "support/rank_test.h"
#include "support/torch_device.h"

namespace fedrun {
namespace {

using namespace test;
using testing::AllOf;
using testing::HasSubstr;
using torch::nn::BatchNormOptions;

constexpr int64_t channels = 4;

// The same on every rank.
torch::Tensor draw(std::vector<int64_t> sizes, uint64_t seed) {
  const auto generator = at::detail::createCPUGenerator(seed);
  return test::randn(sizes, generator, torch::kFloat64);
}

// How the rows of the whole batch are dealt out.
struct Deal {
  std::vector<int64_t> rows;

  int64_t total() const { return before(ranks()); }
  torch::Tensor mine(const torch::Tensor& whole) const { return whole.slice(0, before(rank()), before(rank() + 1)); }

 private:
  int64_t before(int rank) const {
    int64_t sum = 0;
    for (int r = 0; r < rank; ++r) sum += rows[static_cast<std::size_t>(r)];
    return sum;
  }
};

const Deal equal{{3, 3, 3, 3}};
const Deal uneven{{2, 5, 1, 4}};
const Deal with_an_empty_one{{4, 0, 3, 2}};

void expect_close(const torch::Tensor& actual, const torch::Tensor& expected, double tolerance, const char* what) {
  ASSERT_EQ(actual.defined(), expected.defined()) << what;
  if (!expected.defined()) return;
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  EXPECT_TRUE(torch::allclose(actual.to(torch::kFloat64), expected.to(torch::kFloat64), tolerance, tolerance))
      << what << ":\n"
      << actual << "\ninstead of\n"
      << expected;
}

struct Trial {
  BatchNormOptions options = BatchNormOptions(channels);
  Deal deal = uneven;
  std::vector<int64_t> inner = {3, 2};  // the dimensions after the channels
  torch::Dtype type = torch::kFloat64;
  double offset = 0.5;
  double tolerance = 1e-12;
};

// Two steps in training, then an evaluation; everything that a BatchNorm computes is compared.
template <typename BatchNorm>
void expect_equal_to_torch(const Trial& trial) {
  auto whole = test::here(BatchNorm(trial.options));
  auto part = test::here(SyncBatchNorm(trial.options, world()));
  whole->to(torch::kFloat64);
  part->to(trial.type);
  if (trial.options.affine()) {
    const torch::NoGradGuard no_grad;
    whole->weight.copy_(draw({channels}, 1));
    whole->bias.copy_(draw({channels}, 2));
    part->weight.copy_(whole->weight);
    part->bias.copy_(whole->bias);
  }
  std::vector<int64_t> sizes = {trial.deal.total(), channels};
  sizes.insert(sizes.end(), trial.inner.begin(), trial.inner.end());
  for (const uint64_t step : {0, 1}) {
    // Rounded first, so that both sides see the same values.
    const torch::Tensor values = (draw(sizes, 10 + step) + trial.offset).to(trial.type).to(torch::kFloat64);
    const torch::Tensor input = values.clone().requires_grad_();
    const torch::Tensor my_input = trial.deal.mine(values).to(trial.type).clone().requires_grad_();
    const torch::Tensor gradient = draw(sizes, 20 + step);

    const torch::Tensor output = whole->forward(input);
    const torch::Tensor my_output = part->forward(my_input);
    EXPECT_EQ(my_output.scalar_type(), trial.type);
    expect_close(my_output, trial.deal.mine(output), trial.tolerance, "output");

    whole->zero_grad();
    part->zero_grad();
    output.backward(gradient);
    my_output.backward(trial.deal.mine(gradient).to(trial.type));
    expect_close(my_input.grad(), trial.deal.mine(input.grad()), trial.tolerance, "gradient of the input");
    if (trial.options.affine()) {
      expect_close(allreduce(world(), part->weight.grad(), {.op = ReduceOp::sum}), whole->weight.grad(),
                   trial.tolerance * 10, "gradient of the weight");
      expect_close(allreduce(world(), part->bias.grad(), {.op = ReduceOp::sum}), whole->bias.grad(),
                   trial.tolerance * 10, "gradient of the bias");
    }
    expect_close(part->running_mean, whole->running_mean, trial.tolerance, "running mean");
    expect_close(part->running_var, whole->running_var, trial.tolerance, "running variance");
    expect_close(part->num_batches_tracked, whole->num_batches_tracked, 0, "batches");
  }
}

TEST(SyncBatchNorm, EqualsBatchNormOfTheWholeBatch) {
  for (const Deal& deal : {equal, uneven, with_an_empty_one}) {
    expect_equal_to_torch<torch::nn::BatchNorm1d>({.deal = deal, .inner = {}});
    expect_equal_to_torch<torch::nn::BatchNorm1d>({.deal = deal, .inner = {7}});
    expect_equal_to_torch<torch::nn::BatchNorm2d>({.deal = deal, .inner = {3, 5}});
    expect_equal_to_torch<torch::nn::BatchNorm3d>({.deal = deal, .inner = {2, 1, 3}});
  }
}

TEST(SyncBatchNorm, EqualsItInSinglePrecision) {
  for (const Deal& deal : {equal, uneven, with_an_empty_one}) {
    expect_equal_to_torch<torch::nn::BatchNorm2d>({.deal = deal, .type = torch::kFloat32, .tolerance = 1e-6});
  }
}

TEST(SyncBatchNorm, FollowsEveryOption) {
  for (const BatchNormOptions& options :
       {BatchNormOptions(channels).affine(false), BatchNormOptions(channels).track_running_stats(false),
        BatchNormOptions(channels).affine(false).track_running_stats(false), BatchNormOptions(channels).eps(0.7),
        BatchNormOptions(channels).momentum(0.3), BatchNormOptions(channels).momentum(std::nullopt)}) {
    expect_equal_to_torch<torch::nn::BatchNorm2d>({.options = options});
  }
}

TEST(SyncBatchNorm, StandsValuesFarFromZero) {
  expect_equal_to_torch<torch::nn::BatchNorm2d>({.offset = 1000, .tolerance = 1e-8});
  // In f32 the values themselves are known to 6e-5 here, against their deviation of 1.
  expect_equal_to_torch<torch::nn::BatchNorm2d>({.type = torch::kFloat32, .offset = 1000, .tolerance = 1e-4});
}

TEST(SyncBatchNorm, TakesStridedInput) {
  const torch::Tensor values = draw({uneven.total(), channels, 6, 2}, 3);
  auto whole = test::here(torch::nn::BatchNorm2d(BatchNormOptions(channels).affine(false)));
  auto part = test::here(SyncBatchNorm(BatchNormOptions(channels).affine(false), world()));
  whole->to(torch::kFloat64);
  part->to(torch::kFloat64);
  const torch::Tensor expected = uneven.mine(whole->forward(values));
  for (const torch::Tensor& mine : {uneven.mine(values).contiguous(torch::MemoryFormat::ChannelsLast),
                                    uneven.mine(values).transpose(2, 3).contiguous().transpose(2, 3)}) {
    const torch::Tensor input = mine.detach().requires_grad_();
    const torch::Tensor output = part->forward(input);
    expect_close(output, expected, 1e-12, "output");
    output.sum().backward();  // the gradient that arrives is expanded from one element
    expect_close(input.grad(), torch::zeros_like(input), 1e-12, "gradient");
  }
}

TEST(SyncBatchNorm, LeavesGradientsOfParametersToTheOptimizer) {
  const torch::Tensor values = draw({uneven.total(), channels}, 4);
  const torch::Tensor gradient = draw({uneven.total(), channels}, 5);
  auto part = test::here(SyncBatchNorm(channels, world()));
  part->to(torch::kFloat64);
  auto whole = test::here(torch::nn::BatchNorm1d(channels));
  whole->to(torch::kFloat64);
  // The input requires no gradient, as in a first layer.
  part->forward(uneven.mine(values)).backward(uneven.mine(gradient));
  const torch::Tensor normalised = whole->forward(values).detach();
  expect_close(part->bias.grad(), uneven.mine(gradient).sum(0), 1e-12, "gradient of the bias");
  expect_close(part->weight.grad(), uneven.mine(gradient * normalised).sum(0), 1e-12, "gradient of the weight");
}

TEST(SyncBatchNorm, CommunicatesNothingInEvaluation) {
  auto part = test::here(SyncBatchNorm(channels, world()));
  auto alone = test::here(torch::nn::BatchNorm2d(channels));
  const torch::Tensor values = draw({2, channels, 3, 3}, 6).to(torch::kFloat32);
  part->running_mean.fill_(0.5);
  alone->running_mean.fill_(0.5);
  part->eval();
  alone->eval();
  // Where the ranks called different numbers of operations, the sum would fail.
  if (rank() == 0) {
    EXPECT_TRUE(torch::equal(part->forward(values), alone->forward(values)));
    EXPECT_EQ(part->num_batches_tracked.item<int64_t>(), 0);
  }
  auto untracked = test::here(SyncBatchNorm(BatchNormOptions(channels).track_running_stats(false), world()));
  auto untracked_alone = test::here(torch::nn::BatchNorm2d(BatchNormOptions(channels).track_running_stats(false)));
  untracked->eval();
  untracked_alone->eval();
  if (rank() == 0) {
    EXPECT_TRUE(torch::equal(untracked->forward(values), untracked_alone->forward(values)));
  }
  EXPECT_EQ(sum_over(world(), 1), ranks());
}

TEST(SyncBatchNorm, IsABatchNormWithoutAGroup) {
  auto part = test::here(SyncBatchNorm(channels));
  auto alone = test::here(torch::nn::BatchNorm2d(channels));
  const torch::Tensor values = draw({2, channels, 3, 3}, 7 + rank_index()).to(torch::kFloat32);
  EXPECT_TRUE(torch::equal(part->forward(values), alone->forward(values)));
  EXPECT_TRUE(torch::equal(part->running_var, alone->running_var));
  EXPECT_EQ(part->num_batches_tracked.item<int64_t>(), 1);
}

TEST(SyncBatchNorm, NormalisesOverTheRanksOfItsGroup) {
  Communicator group = world().split({.color = rank() % 2});
  auto part = test::here(SyncBatchNorm(BatchNormOptions(1).affine(false).momentum(1), group));
  // Rank r brings r and r + 2; a group has every other rank.
  part->forward(test::tensor({{1.F * rank()}, {2.F + rank()}}));
  double mean = 0;
  for (int member = rank() % 2; member < ranks(); member += 2) mean += member + 1;
  EXPECT_FLOAT_EQ(part->running_mean.item<float>(), mean / group.size());
}

TEST(SyncBatchNorm, LeavesOutRanksThatHaveJoined) {
  if (ranks() == 1) GTEST_SKIP() << "nobody is left";
  if (!is_last_rank()) {
    auto part = test::here(SyncBatchNorm(BatchNormOptions(1).momentum(1), world()));
    const torch::Tensor input = test::tensor({{1.F * rank()}, {2.F + rank()}}, torch::requires_grad());
    part->forward(input).square().sum().backward();
    EXPECT_FLOAT_EQ(part->running_mean.item<float>(), 1 + (ranks() - 2) / 2.F);
  }
  world().join();
}

TEST(SyncBatchNorm, TakesHalfPrecision) {
  const torch::Tensor values = draw({uneven.total(), channels, 5}, 8).to(torch::kBFloat16);
  auto part = test::here(SyncBatchNorm(channels, world()));
  auto whole = test::here(torch::nn::BatchNorm1d(channels));
  const torch::Tensor input = uneven.mine(values).clone().requires_grad_();
  const torch::Tensor output = part->forward(input);
  EXPECT_EQ(output.scalar_type(), torch::kBFloat16);
  expect_close(output, uneven.mine(whole->forward(values.to(torch::kFloat32))), 0.01, "output");
  output.sum().backward();
  EXPECT_EQ(input.grad().scalar_type(), torch::kBFloat16);
}

TEST(SyncBatchNorm, ClonesKeepTheirGroup) {
  auto part = test::here(SyncBatchNorm(BatchNormOptions(1).momentum(1), world()));
  SyncBatchNorm copy(std::dynamic_pointer_cast<SyncBatchNormImpl>(part->clone()));
  copy->forward(test::tensor({{1.F * rank()}, {1.F * rank()}, {1.F * rank() + 3}}));
  EXPECT_FLOAT_EQ(copy->running_mean.item<float>(), 1 + (ranks() - 1) / 2.F);
  EXPECT_EQ(part->running_mean.item<float>(), 0);
}

TEST(SyncBatchNorm, ReportsLayersThatDiffer) {
  if (ranks() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const int64_t mine = is_last_rank() ? 5 : 4;
  auto part = test::here(SyncBatchNorm(mine, world()));
  const std::string text = mismatch_error_of([&] { part->forward(test::ones({2, mine})); });
  EXPECT_THAT(text, AllOf(HasSubstr("different numbers of channels"), HasSubstr("of 9 f64"), HasSubstr("of 11 f64"),
                          HasSubstr("SyncBatchNorm.forward")));
  EXPECT_EQ(part->num_batches_tracked.item<int64_t>(), 0);
  EXPECT_EQ(sum_over(world(), 1), ranks());
}

TEST(SyncBatchNorm, RefusesBatchesWithoutAVariance) {
  auto part = test::here(SyncBatchNorm(channels, world()));
  const int64_t rows = rank() == 0 ? 1 : 0;
  EXPECT_THAT(usage_error_of([&] {
                part->forward(test::ones({rows, channels}));
              }),
              AllOf(HasSubstr("1 value(s) in each channel"), HasSubstr("give 2 or more")));
  EXPECT_THAT(usage_error_of([&] { part->forward(test::ones({0, channels})); }), HasSubstr("0 value(s)"));
  EXPECT_EQ(part->num_batches_tracked.item<int64_t>(), 0);
}

TEST(SyncBatchNorm, RefusesInputThatDoesNotFit) {
  auto part = test::here(SyncBatchNorm(channels, world()));
  EXPECT_THAT(usage_error_of([&] {
                part->forward(test::ones({2, 3, 5}));
              }),
              HasSubstr("SyncBatchNorm: the input has the shape [2, 3, 5], but (N, 4, …) is needed"));
  EXPECT_THAT(usage_error_of([&] { part->forward(test::ones({4})); }), HasSubstr("shape [4]"));
  EXPECT_THAT(usage_error_of([&] {
                part->forward(test::ones({2, channels}, torch::kFloat64));
              }),
              HasSubstr("the input is Double and the layer Float"));
  EXPECT_THAT(usage_error_of([&] { part->forward(test::ones({2, channels}, torch::kInt64)); }), HasSubstr("Long"));
  part->to(torch::kBFloat16);
  EXPECT_THAT(usage_error_of([&] {
                part->forward(test::ones({2, channels}, torch::kBFloat16));
              }),
              HasSubstr("keep the layer in float32 or float64"));
  EXPECT_THAT(usage_error_of([] { SyncBatchNorm(0); }), HasSubstr("0 channels"));
}

TEST(SyncBatchNorm, HasNoSecondDerivative) {
  if (ranks() == 1) GTEST_SKIP() << "one rank uses Torch's BatchNorm, which has one";
  auto part = test::here(SyncBatchNorm(channels, world()));
  const torch::Tensor input = test::randn({2, channels}, torch::requires_grad());
  const torch::Tensor loss = part->forward(input).square().sum();
  EXPECT_THAT(usage_error_of([&] { torch::autograd::grad({loss}, {input}, {}, true, /*create_graph=*/true); }),
              HasSubstr("SyncBatchNorm has no second derivative"));
}

}  // namespace
}  // namespace fedrun
