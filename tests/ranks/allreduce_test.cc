// Every type, operation, awkward size and way to call, with small integers, whose results are exact in every type.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "support/rank_test.h"
#include "support/rank_values.h"

namespace fedrun {
namespace {

using namespace test;

template <typename T>
class AllreduceOfType : public testing::Test {};
TYPED_TEST_SUITE(AllreduceOfType, AllTypes);

template <typename T>
testing::AssertionResult is_reduced(const Elements<T>& values, ReduceOp op) {
  return match(values, [&](std::size_t index) { return reduced<T>(op, first_ranks(ranks()), index); });
}

template <typename T, typename Use>
void for_each_case(Use use) {
  for (const ReduceOp op : reduce_ops) {
    if (!has<T>(op)) continue;
    for (const std::size_t count : awkward_counts) use(op, count);
  }
}

TYPED_TEST(AllreduceOfType, InPlace) {
  for_each_case<TypeParam>([](ReduceOp op, std::size_t count) {
    auto values = elements_of<TypeParam>(rank(), count);
    world().allreduce(values, {.op = op});
    ASSERT_TRUE(is_reduced(values, op)) << to_string(op);
  });
}

TYPED_TEST(AllreduceOfType, OutOfPlaceKeepsTheInput) {
  for_each_case<TypeParam>([](ReduceOp op, std::size_t count) {
    const auto input = elements_of<TypeParam>(rank(), count);
    Elements<TypeParam> output(count);
    world().allreduce(as_const_buffer(input), as_buffer(output), {.op = op});
    ASSERT_TRUE(is_reduced(output, op)) << to_string(op);
    ASSERT_TRUE(are_elements_of(rank(), std::span<const TypeParam>(input)));
  });
}

TYPED_TEST(AllreduceOfType, AsyncInPlaceAndOutOfPlaceAllAtOnce) {
  struct Started {
    ReduceOp op;
    Elements<TypeParam> input;
    Elements<TypeParam> output;
    Elements<TypeParam> in_place;
    std::array<std::unique_ptr<Work>, 2> works{};
  };
  std::vector<std::unique_ptr<Started>> all;
  for_each_case<TypeParam>([&](ReduceOp op, std::size_t count) {
    all.push_back(std::make_unique<Started>(op, elements_of<TypeParam>(rank(), count), Elements<TypeParam>(count),
                                            elements_of<TypeParam>(rank(), count)));
    Started& last = *all.back();
    last.works = {world().allreduce_async(as_const_buffer(last.input), as_buffer(last.output), {.op = op}),
                  world().allreduce_async(last.in_place, {.op = op})};
  });
  for (const auto& started : all) {
    for (const auto& work : started->works) work->wait();
    ASSERT_TRUE(is_reduced(started->output, started->op)) << to_string(started->op);
    ASSERT_TRUE(is_reduced(started->in_place, started->op)) << to_string(started->op);
  }
}

TEST(Allreduce, HalvesAddInSinglePrecision) {
  if (ranks() < 3) GTEST_SKIP() << "two additions are needed to tell";
  if (world().backend_name() == "nccl") GTEST_SKIP() << "NCCL adds halves in half precision";
  // 2049 has no f16. Rounded after each addition, 2048 + 1 + 1 would stay 2048.
  std::array<F16, 1> value = {to_f16(rank() == 0 ? 2048.0F : rank() < 3 ? 1.0F : 0.0F)};
  world().allreduce(value, {.op = ReduceOp::sum});
  EXPECT_EQ(to_float(value[0]), 2050.0F);
}

TEST(Allreduce, OfIntegersWrapsAround) {
  std::array<std::uint8_t, 1> value = {static_cast<std::uint8_t>(rank() == 0 ? 255 : 1)};
  world().allreduce(value, {.op = ReduceOp::sum});
  EXPECT_EQ(value[0], static_cast<std::uint8_t>(255 + ranks() - 1));
}

template <typename T>
void expect_nan_from_rank(int source) {
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    const float mine = rank() == source ? std::numeric_limits<float>::quiet_NaN() : 1.0F;
    std::array<T, 2> values = {narrow<T>(mine), narrow<T>(2.0F)};
    world().allreduce(values, {.op = op});
    EXPECT_TRUE(std::isnan(widen(values[0]))) << to_string(op) << ", NaN of rank " << source;
    EXPECT_EQ(widen(values[1]), 2);
  }
}

TEST(Allreduce, MinAndMaxKeepNans) {
  for (int source = 0; source < ranks(); ++source) {
    expect_nan_from_rank<float>(source);
    expect_nan_from_rank<double>(source);
    expect_nan_from_rank<F16>(source);
    expect_nan_from_rank<Bf16>(source);
  }
}

TEST(Allreduce, DroppedWorkStillCompletes) {
  float value = 1;
  static_cast<void>(world().allreduce_async(as_buffer(std::span(&value, 1)), {.op = ReduceOp::sum}));
  EXPECT_EQ(value, static_cast<float>(ranks()));
}

}  // namespace
}  // namespace fedrun
