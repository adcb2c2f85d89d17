// What NCCL adds, and what is left to the kernels before and after it.
#include <fedrun/collectives/device_reduction.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>

namespace fedrun {
namespace {

DeviceTerms terms(DataType type, ReducePlan plan) {
  return {.kind = Collective::allreduce, .type = type, .count = 5, .plan = std::move(plan)};
}

TEST(DeviceReduction, AveragesOverTwoRanksWithoutAKernel) {
  const auto average =
      plan_device_reduction(terms(DataType::f32, {.sources = {0, 1}, .op = ReduceOp::average, .divisor = 2}), 1, 2);
  EXPECT_EQ(average.op, ReduceOp::sum);
  EXPECT_EQ(average.multiplier, 0.5);
  EXPECT_EQ(average.type, DataType::f32);
  EXPECT_EQ(average.factor, 1);
  EXPECT_EQ(average.divisor, 1);
}

TEST(DeviceReduction, DividesTheSumWhereAThirdWouldBeRounded) {
  const auto average =
      plan_device_reduction(terms(DataType::f32, {.sources = {0, 1, 2}, .op = ReduceOp::average, .divisor = 3}), 0, 3);
  EXPECT_FALSE(average.multiplier.has_value());
  EXPECT_EQ(average.before, 1);
  EXPECT_EQ(average.divisor, 3);
}

TEST(DeviceReduction, NeedsNothingForASum) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
    const auto sum = plan_device_reduction(terms(DataType::f16, {.sources = {0, 1}, .op = op}), 0, 2);
    EXPECT_FALSE(sum.multiplier.has_value());
    EXPECT_EQ(sum.op, op);
    EXPECT_EQ(sum.before * sum.factor * sum.divisor, 1);
    EXPECT_EQ(sum.type, DataType::f16);
  }
}

TEST(DeviceReduction, AddsWeightedIntegersInF64AndHalvesInF32) {
  const ReducePlan weighted{.sources = {0, 2}, .weights = {3, 5}, .op = ReduceOp::average, .divisor = 8};
  const auto integers = plan_device_reduction(terms(DataType::i32, weighted), 2, 3);
  EXPECT_EQ(integers.type, DataType::f64);
  EXPECT_EQ(integers.before, 5);
  EXPECT_EQ(integers.divisor, 8);
  EXPECT_EQ(plan_device_reduction(terms(DataType::bf16, weighted), 0, 3).type, DataType::f32);
  EXPECT_FALSE(plan_device_reduction(terms(DataType::bf16, weighted), 1, 3).takes_part);
}

TEST(DeviceReduction, ScalesBeforeWhatTravelsAsHalves) {
  DeviceTerms half = terms(DataType::f32, {.sources = {0, 1, 2}, .op = ReduceOp::average, .divisor = 3});
  half.wire = DataType::f16;
  const auto average = plan_device_reduction(half, 0, 3);
  EXPECT_EQ(average.type, DataType::f16);
  EXPECT_EQ(average.before, 1.0 / 3);
  EXPECT_EQ(average.divisor, 1);
  half.plan = {.sources = {0}};
  EXPECT_EQ(plan_device_reduction(half, 0, 1).type, DataType::f32) << "alone, nothing travels";
}

TEST(DeviceReduction, TakesBytesForBooleans) {
  const auto any = plan_device_reduction(terms(DataType::boolean, {.sources = {0, 1}, .op = ReduceOp::sum}), 0, 2);
  EXPECT_EQ(any.type, DataType::u8);
  EXPECT_EQ(any.op, ReduceOp::max);
  const auto all = plan_device_reduction(terms(DataType::boolean, {.sources = {0, 1}, .op = ReduceOp::product}), 0, 2);
  EXPECT_EQ(all.op, ReduceOp::min);
}

TEST(DeviceReduction, OfNobodyIsEmpty) {
  EXPECT_TRUE(plan_device_reduction(terms(DataType::f32, {.op = ReduceOp::average}), 0, 2).is_empty);
}

TEST(DeviceReduction, NeutralElementsChangeNothing) {
  EXPECT_EQ(neutral_bits(ReduceOp::sum, DataType::f64), 0U);
  EXPECT_EQ(neutral_bits(ReduceOp::product, DataType::f32), std::bit_cast<std::uint32_t>(1.0F));
  EXPECT_EQ(neutral_bits(ReduceOp::product, DataType::i64), 1U);
  EXPECT_EQ(neutral_bits(ReduceOp::min, DataType::f16), 0x7C00U);
  EXPECT_EQ(neutral_bits(ReduceOp::max, DataType::bf16), 0xFF80U);
  EXPECT_EQ(neutral_bits(ReduceOp::max, DataType::i8), 0x80U);
  EXPECT_EQ(neutral_bits(ReduceOp::min, DataType::u8), 0xFFU);
}

}  // namespace
}  // namespace fedrun
