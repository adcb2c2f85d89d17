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

std::vector<Bucket> plan_backwards(const std::vector<PlannedParameter>& parameters, const BucketSizes& sizes = {}) {
  return plan_buckets(parameters, last_to_first(parameters.size()), sizes);
}

using Lists = std::vector<std::vector<std::size_t>>;

TEST(BucketPlan, GoesBackwards) {
  const std::vector<PlannedParameter> parameters(4, {16, DataType::f32});
  EXPECT_EQ(parameters_of(plan_backwards(parameters)), (Lists{{3, 2, 1, 0}}));
}

TEST(BucketPlan, ClosesABucketOnceItIsFull) {
  const std::vector<PlannedParameter> parameters(5, {64, DataType::f32});  // 256 bytes each
  EXPECT_EQ(parameters_of(plan_backwards(parameters, {.first_bytes = 256, .bytes = 512})),
            (Lists{{4}, {3, 2}, {1, 0}}));
}

TEST(BucketPlan, GivesALargeParameterItsOwnBucket) {
  const std::vector<PlannedParameter> parameters = {{64, DataType::f32}, {1000, DataType::f32}, {64, DataType::f32}};
  EXPECT_EQ(parameters_of(plan_backwards(parameters, {.first_bytes = 256, .bytes = 512})), (Lists{{2}, {1}, {0}}));
}

TEST(BucketPlan, KeepsTypesApartInTheOrderOfCompletion) {
  const std::vector<PlannedParameter> parameters = {{8, DataType::f32}, {8, DataType::f64}, {8, DataType::f32}};
  const auto buckets = plan_backwards(parameters);
  EXPECT_EQ(parameters_of(buckets), (Lists{{1}, {2, 0}}));
  EXPECT_EQ(buckets[0].type, DataType::f64);
  EXPECT_EQ(buckets[1].type, DataType::f32);
}

TEST(BucketPlan, AlignsSlots) {
  const std::vector<PlannedParameter> parameters = {{1, DataType::f32}, {65, DataType::f32}, {0, DataType::f32}};
  const auto buckets = plan_backwards(parameters);
  ASSERT_EQ(buckets.size(), 1U);
  EXPECT_EQ(buckets[0].slots[0].first_element, 0U);
  EXPECT_EQ(buckets[0].slots[1].first_element, 0U);    // after an empty parameter
  EXPECT_EQ(buckets[0].slots[2].first_element, 128U);  // 65 rounded up
  EXPECT_EQ(buckets[0].elements, 192U);
}

TEST(BucketPlan, FollowsTheOrderAndLeavesOutTheRest) {
  const std::vector<PlannedParameter> parameters(5, {64, DataType::f32});
  const std::vector<std::size_t> order = {1, 4, 0};
  EXPECT_EQ(parameters_of(plan_buckets(parameters, order, {.first_bytes = 512, .bytes = 512})), (Lists{{1, 4}, {0}}));
}

TEST(BucketPlan, KeepsGroupsTogetherWhateverTheirSize) {
  std::vector<PlannedParameter> parameters(5, {64, DataType::f32});
  parameters[4].group = parameters[1].group = parameters[0].group = 0;
  EXPECT_EQ(parameters_of(plan_backwards(parameters, {.first_bytes = 1, .bytes = 1})), (Lists{{3}, {2}, {4, 1, 0}}));
}

TEST(BucketPlan, SplitsGroupsByType) {
  const std::vector<PlannedParameter> parameters = {
      {8, DataType::f32, 0}, {8, DataType::f64, 0}, {8, DataType::f32, 0}};
  EXPECT_EQ(parameters_of(plan_backwards(parameters)), (Lists{{1}, {2, 0}}));
}

TEST(BucketPlan, KeepsDevicesApart) {
  const std::vector<PlannedParameter> parameters = {
      {8, DataType::f32}, {8, DataType::f32, -1, Device::cuda}, {8, DataType::f32}};
  EXPECT_EQ(parameters_of(plan_backwards(parameters)), (Lists{{1}, {2, 0}}));
}

TEST(BucketParts, AreEqualButForTheLast) {
  using Parts = std::vector<std::size_t>;
  EXPECT_EQ(parts_of(6 * slot_alignment, 3), (Parts{2 * slot_alignment, 2 * slot_alignment, 2 * slot_alignment}));
  EXPECT_EQ(parts_of(7 * slot_alignment, 3), (Parts{2 * slot_alignment, 2 * slot_alignment, 3 * slot_alignment}));
  EXPECT_EQ(parts_of(slot_alignment, 2), (Parts{0, slot_alignment}));
  EXPECT_EQ(parts_of(slot_alignment, 1), (Parts{slot_alignment}));
}

TEST(BucketPlan, OfNothingIsEmpty) { EXPECT_TRUE(plan_backwards({}).empty()); }

}  // namespace
}  // namespace fedrun
