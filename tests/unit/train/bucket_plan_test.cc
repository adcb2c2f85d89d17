#include <fedrun/train/bucket_plan.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fedrun {
namespace {

std::vector<std::vector<std::size_t>> parameters_of(const std::vector<Bucket>& buckets) {
  std::vector<std::vector<std::size_t>> result;
  for (const Bucket& bucket : buckets) {
    result.emplace_back();
    for (const BucketSlot& slot : bucket.slots) result.back().push_back(slot.parameter);
  }
  return result;
}

using Lists = std::vector<std::vector<std::size_t>>;

TEST(BucketPlan, GoesBackwards) {
  const std::vector<PlannedParameter> parameters(4, {16, DataType::f32});
  EXPECT_EQ(parameters_of(plan_buckets(parameters)), (Lists{{3, 2, 1, 0}}));
}

TEST(BucketPlan, ClosesABucketOnceItIsFull) {
  const std::vector<PlannedParameter> parameters(5, {16, DataType::f32});  // 64 bytes each
  EXPECT_EQ(parameters_of(plan_buckets(parameters, {.first_bytes = 64, .bytes = 128})), (Lists{{4}, {3, 2}, {1, 0}}));
}

TEST(BucketPlan, GivesALargeParameterItsOwnBucket) {
  const std::vector<PlannedParameter> parameters = {{16, DataType::f32}, {1000, DataType::f32}, {16, DataType::f32}};
  EXPECT_EQ(parameters_of(plan_buckets(parameters, {.first_bytes = 64, .bytes = 128})), (Lists{{2}, {1}, {0}}));
}

TEST(BucketPlan, KeepsTypesApart) {
  const std::vector<PlannedParameter> parameters = {{8, DataType::f32}, {8, DataType::f64}, {8, DataType::f32}};
  const auto buckets = plan_buckets(parameters);
  EXPECT_EQ(parameters_of(buckets), (Lists{{2, 0}, {1}}));
  EXPECT_EQ(buckets[0].type, DataType::f32);
  EXPECT_EQ(buckets[1].type, DataType::f64);
}

TEST(BucketPlan, AlignsSlotsToCacheLines) {
  const std::vector<PlannedParameter> parameters = {{1, DataType::f32}, {17, DataType::f32}, {0, DataType::f32}};
  const auto buckets = plan_buckets(parameters);
  ASSERT_EQ(buckets.size(), 1U);
  EXPECT_EQ(buckets[0].slots[0].first_element, 0U);
  EXPECT_EQ(buckets[0].slots[1].first_element, 0U);   // after an empty parameter
  EXPECT_EQ(buckets[0].slots[2].first_element, 32U);  // 17 rounded up
  EXPECT_EQ(buckets[0].elements, 48U);
}

TEST(BucketPlan, OfNothingIsEmpty) { EXPECT_TRUE(plan_buckets({}).empty()); }

}  // namespace
}  // namespace fedrun
