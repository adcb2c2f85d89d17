// Adasum against its definition, carried out vector by vector.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "support/rank_test.h"
#include "support/rank_values.h"
#include "support/shared_seed.h"

namespace fedrun {
namespace {

using namespace test;

using Vector = std::vector<double>;

double product(const Vector& a, const Vector& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

Vector adasum_of_two(const Vector& a, const Vector& b) {
  const double in_common = product(a, b);
  const double share_of_a = product(a, a) > 0 ? 1 - in_common / (2 * product(a, a)) : 1;
  const double share_of_b = product(b, b) > 0 ? 1 - in_common / (2 * product(b, b)) : 1;
  Vector both(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) both[i] = share_of_a * a[i] + share_of_b * b[i];
  return both;
}

// Pairs of neighbours, level by level; one without a partner waits.
Vector adasum_of_all(std::vector<Vector> level) {
  while (level.size() > 1) {
    std::vector<Vector> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(adasum_of_two(level[i], level[i + 1]));
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = std::move(next);
  }
  return level.front();
}

// What rank `from` brings: multiples of 1/8 from -2 to 2, which every type represents.
Vector vector_of(int from, std::size_t count, std::uint32_t seed) {
  Random random(seed + static_cast<std::uint32_t>(from));
  Vector values(count);
  for (double& value : values) value = static_cast<double>(random() % 33) / 8 - 2;
  return values;
}

template <typename T>
Elements<T> as_elements(const Vector& values) {
  Elements<T> elements(values.size());
  std::ranges::transform(values, elements.begin(), [](double value) { return narrow<T>(value); });
  return elements;
}

template <typename T>
void expect_near(const Elements<T>& actual, const Vector& expected, double tolerance) {
  double largest_error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest_error = std::max(largest_error, std::abs(static_cast<double>(widen(actual.begin()[i])) - expected[i]));
  }
  EXPECT_LE(largest_error, tolerance);
}

template <typename T>
class AdasumOfType : public testing::Test {
 protected:
  // The result has magnitude 8 or less: half a unit of the last place there.
  static constexpr double tolerance = std::is_same_v<T, double>  ? 1e-13
                                      : std::is_same_v<T, float> ? 1e-6
                                      : std::is_same_v<T, F16>   ? 8.0 / 2048
                                                                 : 8.0 / 256;
};
using FloatTypes = testing::Types<F16, Bf16, float, double>;
TYPED_TEST_SUITE(AdasumOfType, FloatTypes);

TYPED_TEST(AdasumOfType, FollowsItsDefinition) {
  for (const std::size_t count : {1, 3, 17, 289, 1025, 20'011}) {
    std::vector<Vector> vectors;
    for (int from = 0; from < ranks(); ++from) vectors.push_back(vector_of(from, count, 5));
    auto values = as_elements<TypeParam>(vectors[rank_index()]);
    world().allreduce(values, {.op = ReduceOp::adasum});
    expect_near(values, adasum_of_all(vectors), this->tolerance);
  }
}

TYPED_TEST(AdasumOfType, AddsWhatIsOrthogonal) {
  for (const std::size_t count : {17U, 20'011U}) {
    Elements<TypeParam> values(count);
    for (std::size_t i = rank_index(); i < count; i += static_cast<std::size_t>(ranks())) {
      values.begin()[i] = narrow<TypeParam>(rank() + 1);
    }
    world().allreduce(values, {.op = ReduceOp::adasum});
    bool is_sum = true;
    for (std::size_t i = 0; i < count; ++i) {
      is_sum = is_sum && widen(values.begin()[i]) == static_cast<double>(i % static_cast<std::size_t>(ranks()) + 1);
    }
    EXPECT_TRUE(is_sum) << count;
  }
}

TYPED_TEST(AdasumOfType, AveragesWhatIsEqual) {
  for (const std::size_t count : {17U, 20'011U}) {
    const auto input = elements_of<TypeParam>(7, count);  // the same on every rank
    Elements<TypeParam> output(count);
    world().allreduce(as_const_buffer(input), as_buffer(output), {.op = ReduceOp::adasum});
    EXPECT_TRUE(are_elements_of(7, std::span<const TypeParam>(output)));
  }
}

TYPED_TEST(AdasumOfType, IgnoresZeros) {
  Elements<TypeParam> nothing(1025);
  world().allreduce(nothing, {.op = ReduceOp::adasum});
  EXPECT_TRUE(match(nothing, [](std::size_t) { return narrow<TypeParam>(0); }));
  for (int only = 0; only < ranks(); ++only) {
    auto values = rank() == only ? elements_of<TypeParam>(only, 1025) : Elements<TypeParam>(1025);
    world().allreduce(values, {.op = ReduceOp::adasum});
    EXPECT_TRUE(are_elements_of(only, std::span<const TypeParam>(values)));
  }
}

TEST(Adasum, ScalesOutOfPlaceAndKeepsTheInput) {
  const auto input = elements_of<float>(7, 1025);
  Elements<float> output(1025);
  world().allreduce(as_const_buffer(input), as_buffer(output),
                    {.op = ReduceOp::adasum, .prescale = 4, .postscale = 0.5});
  EXPECT_TRUE(match(output, [](std::size_t i) { return 2 * element<float>(7, i); }));
  EXPECT_TRUE(are_elements_of(7, std::span<const float>(input)));
}

TEST(Adasum, OfNothing) {
  Elements<float> nothing(0);
  world().allreduce(nothing, {.op = ReduceOp::adasum});
}

// Several under way. The ranks' vectors are orthogonal, so that each result is a sum that tells whether all took part.
class AdasumsUnderWay : public testing::Test {
 protected:
  void start(std::size_t number, std::string_view name) {
    elements_.push_back(elements_of<float>(static_cast<int>(number), 100 + 3'000 * (number % 3)));
    for (std::size_t i = 0; i < elements_.back().size(); ++i) {
      if (i % static_cast<std::size_t>(ranks()) != rank_index()) elements_.back().begin()[i] = 0;
    }
    numbers_.push_back(static_cast<int>(number));
    works_.push_back(world().allreduce_async(elements_.back(), {.op = ReduceOp::adasum, .name = name}));
  }
  void expect_sums() {
    for (std::size_t i = 0; i < works_.size(); ++i) {
      EXPECT_TRUE(are_elements_of(numbers_[i], std::span<const float>(elements_[i])));
    }
  }

  std::deque<Elements<float>> elements_;
  std::vector<int> numbers_;
  std::vector<std::unique_ptr<Work>> works_;
};

TEST_F(AdasumsUnderWay, AreWaitedForInOrder) {
  for (std::size_t i = 0; i < 12; ++i) start(i, "");
  for (const auto& work : works_) work->wait();
  expect_sums();
}

TEST_F(AdasumsUnderWay, WithNamesInAnyOrderArePolled) {
  Random random(shared_seed() + static_cast<std::uint32_t>(rank()));
  for (const std::size_t i : shuffled(12, random)) start(i, fmt::format("layer {}", i));
  while (std::ranges::count_if(works_, [](const auto& work) { return work->done(); }) < 12) {
  }
  expect_sums();
}

TEST_F(AdasumsUnderWay, AreWaitedForInOppositeOrders) {
  for (std::size_t i = 0; i < 4; ++i) start(i, "");
  if (rank() % 2 == 0) std::ranges::reverse(works_);
  for (const auto& work : works_) work->wait();
  if (rank() % 2 == 0) std::ranges::reverse(works_);
  expect_sums();
}

TEST_F(AdasumsUnderWay, GoOnWhileSomethingElseIsWaitedFor) {
  start(1, "");
  if (rank() == 0) works_.front()->wait();  // the others only wait for the barrier, which rank 0 calls later
  world().barrier();
  works_.front()->wait();
  expect_sums();
}

TEST_F(AdasumsUnderWay, FinishWhenTheyAreDropped) {
  start(1, "");
  works_.front().reset();
  expect_sums();
}

}  // namespace
}  // namespace fedrun
