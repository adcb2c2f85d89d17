// Weights, prescale, postscale and the type on the wire.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/rank_test.h"
#include "support/rank_values.h"

namespace fedrun {
namespace {

using namespace test;

// One value that fits on the board, and as many as take the long way.
constexpr std::array<std::size_t, 3> counts = {1, 289, 100'003};

// Rank r brings r + 1 everywhere.
template <typename T>
void expect_everywhere(double expected, const ReduceOptions& options, double mine = rank() + 1) {
  for (const std::size_t count : counts) {
    Elements<T> values(count);
    std::ranges::fill(values, narrow<T>(mine));
    world().allreduce(values, options);
    EXPECT_TRUE(match(values, [&](std::size_t) { return narrow<T>(expected); })) << to_string(data_type_of<T>());
    Elements<T> part(world().equal_parts(count)[rank_index()]);
    std::ranges::fill(values, narrow<T>(mine));
    world().reduce_scatter(as_const_buffer(values), as_buffer(part), options);
    EXPECT_TRUE(match(part, [&](std::size_t) { return narrow<T>(expected); })) << to_string(data_type_of<T>());
  }
}

double sum_of_ranks() { return ranks() * (ranks() + 1) / 2.0; }
double product_of_ranks() { return std::tgamma(ranks() + 1); }

template <typename T>
class ScaleOfType : public testing::Test {};
TYPED_TEST_SUITE(ScaleOfType, NumberTypes);

TYPED_TEST(ScaleOfType, ScalesBeforeAndAfter) {
  expect_everywhere<TypeParam>(2 * sum_of_ranks(), {.op = ReduceOp::sum, .prescale = 2});
  expect_everywhere<TypeParam>(2 * sum_of_ranks(), {.op = ReduceOp::sum, .postscale = 2});
  expect_everywhere<TypeParam>(4 * sum_of_ranks() / ranks(), {.prescale = 0.5, .postscale = 8});
  expect_everywhere<TypeParam>(0, {.op = ReduceOp::sum, .prescale = 0});
}

TYPED_TEST(ScaleOfType, ScalesWhatIsNotLinear) {
  expect_everywhere<TypeParam>(3, {.op = ReduceOp::min, .prescale = 3});
  expect_everywhere<TypeParam>(3 * ranks(), {.op = ReduceOp::max, .postscale = 3});
  expect_everywhere<TypeParam>(product_of_ranks(),
                               {.op = ReduceOp::product, .prescale = 2, .postscale = std::pow(0.5, ranks())});
}

TYPED_TEST(ScaleOfType, WeighsEachRank) {
  double weighted = 0;
  for (int each = 1; each <= ranks(); ++each) weighted += each * each;
  const double weight = rank() + 1;
  expect_everywhere<TypeParam>(weighted, {.op = ReduceOp::sum, .weight = weight});
  expect_everywhere<TypeParam>(2 * weighted, {.op = ReduceOp::sum, .weight = weight, .prescale = 4, .postscale = 0.5});
  expect_everywhere<TypeParam>(weighted / sum_of_ranks(), {.weight = weight});
  expect_everywhere<TypeParam>(0, {.weight = 0.0});
}

TEST(Scale, NegativeFactorsTurnMinAndMaxAround) {
  // The smallest of -1, …, -ranks is -ranks.
  expect_everywhere<float>(-ranks(), {.op = ReduceOp::min, .prescale = -1});
  expect_everywhere<std::int32_t>(-1, {.op = ReduceOp::max, .prescale = -1});
  expect_everywhere<double>(-1, {.op = ReduceOp::min, .postscale = -1});
  expect_everywhere<std::int64_t>(-ranks(), {.op = ReduceOp::max, .postscale = -1});
  expect_everywhere<F16>(std::pow(-1, ranks()) * product_of_ranks(), {.op = ReduceOp::product, .prescale = -1});
}

TEST(Scale, FractionsOfIntegersAreKeptUntilTheEnd) {
  // Each half of an odd number would lose its fraction if it were stored before the sum.
  expect_everywhere<std::int32_t>(std::trunc(ranks() * 0.5), {.op = ReduceOp::sum, .prescale = 0.5}, 1);
  expect_everywhere<std::uint8_t>(std::trunc(ranks() * 1.5), {.op = ReduceOp::sum, .weight = 0.5}, 3);
}

TEST(Scale, WeightZeroLeavesTheRankOutWhateverItBrings) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (int only = 0; only < ranks(); ++only) {
    const bool counts_here = rank() == only;
    const ReduceOptions average{.weight = counts_here ? 3.0 : 0.0};
    expect_everywhere<float>(5, average, counts_here ? 5 : infinity);
    expect_everywhere<double>(5, average, counts_here ? 5 : std::nan(""));
    expect_everywhere<Bf16>(5, average, counts_here ? 5 : -infinity);
    expect_everywhere<float>(15, {.op = ReduceOp::sum, .weight = average.weight}, counts_here ? 5 : infinity);
  }
}

TEST(Scale, LargeWeightsAreSummedExactly) {
  constexpr double samples = 1 << 26;  // more than an f32 counts in steps of one
  expect_everywhere<float>(1, {.weight = samples + rank()}, 1);
}

TEST(Wire, HalvesCarryWhatTheyCanRepresent) {
  for (const DataType wire : {DataType::f16, DataType::bf16}) {
    expect_everywhere<float>(sum_of_ranks(), {.op = ReduceOp::sum, .wire = wire});
    expect_everywhere<float>(sum_of_ranks() / 2, {.op = ReduceOp::sum, .prescale = 0.25, .postscale = 2, .wire = wire});
    expect_everywhere<float>(ranks(), {.op = ReduceOp::max, .wire = wire});
    expect_everywhere<float>(2, {.weight = rank() == 1 || ranks() == 1 ? 4.0 : 0.0, .wire = wire}, 2);
  }
}

TEST(Wire, RoundsNothingInsideAHost) {
  if (ranks() > 1 && world().backend_name() != "shm") GTEST_SKIP() << "the ranks are on several hosts";
  expect_everywhere<float>(2049.0 * ranks(), {.op = ReduceOp::sum, .wire = DataType::f16}, 2049);
}

TEST(Wire, RoundsBetweenHosts) {
  if (world().backend_name() == "shm" || ranks() == 1) GTEST_SKIP() << "the ranks are on one host";
  const auto sum_of = [](float value, DataType wire) {
    std::vector<float> values(100'003, rank() == 0 ? value : 0);  // small ones travel whole, with the call
    world().allreduce(values, {.op = ReduceOp::sum, .wire = wire});
    return values.back();
  };
  EXPECT_EQ(sum_of(2049, DataType::f16), 2048);  // to even
  EXPECT_EQ(sum_of(257, DataType::bf16), 256);
}

}  // namespace
}  // namespace fedrun
