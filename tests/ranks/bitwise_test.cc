// What is promised bit by bit: the same on all ranks, each time, however it is called; inside a host, in rank order.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "support/plain_reduction.h"
#include "support/rank_test.h"
#include "support/rank_values.h"
#include "support/shared_seed.h"

namespace fedrun {
namespace {

using namespace test;

constexpr std::array<std::size_t, 4> counts = {5, 289, 20'011, 100'003};

// Numbers of many magnitudes, so that every other order of additions would show.
template <typename T>
Elements<T> random_elements(int from, std::size_t count, std::uint32_t seed) {
  Random random(seed + 1000 * static_cast<std::uint32_t>(from));
  Elements<T> elements(count);
  for (T& element : elements) {
    const auto sign = random() % 2 == 0 ? 1.0F : -1.0F;
    element = narrow<T>(sign * std::ldexp(1.0F + static_cast<float>(random() % 1024) / 1024, random() % 12));
  }
  return elements;
}

template <typename T>
bool are_equal(const Elements<T>& a, const Elements<T>& b) {
  return a.size() == b.size() && std::memcmp(a.begin(), b.begin(), a.size() * sizeof(T)) == 0;
}

template <typename T>
class BitwiseOfType : public testing::Test {
 protected:
  std::uint32_t seed_ = shared_seed();
};
using FloatTypes = testing::Types<F16, Bf16, float, double>;
TYPED_TEST_SUITE(BitwiseOfType, FloatTypes);

std::vector<ReduceOptions> all_options() {
  return {{.op = ReduceOp::sum}, {}, {.weight = 0.1 * (rank() + 1)}, {.op = ReduceOp::sum, .postscale = 0.3}};
}

TYPED_TEST(BitwiseOfType, IsTheSameOnAllRanks) {
  for (const ReduceOptions& options : all_options()) {
    for (const std::size_t count : counts) {
      auto values = random_elements<TypeParam>(rank(), count, this->seed_);
      world().allreduce(values, options);
      auto of_rank_0 = Elements<TypeParam>(count);
      std::ranges::copy(values, of_rank_0.begin());
      world().broadcast(of_rank_0);
      ASSERT_TRUE(are_equal(values, of_rank_0)) << to_string(options.op) << " of " << count;
    }
  }
}

TYPED_TEST(BitwiseOfType, IsTheSameHoweverItIsCalled) {
  for (const ReduceOptions& options : all_options()) {
    for (const std::size_t count : {289U, 100'003U}) {
      const auto input = random_elements<TypeParam>(rank(), count, this->seed_);
      Elements<TypeParam> expected(count);
      world().allreduce(as_const_buffer(input), as_buffer(expected), options);
      const Memory memory = world().allocate(count * sizeof(TypeParam));
      const std::span<TypeParam> allocated(static_cast<TypeParam*>(memory.data()), count);
      for (int round = 0; round < 2; ++round) {
        std::ranges::copy(input, allocated.begin());
        std::vector<Elements<TypeParam>> results;
        std::vector<std::unique_ptr<Work>> works;
        for (int i = 0; i < 3; ++i) {
          std::ranges::copy(input, results.emplace_back(count).begin());
          works.push_back(world().allreduce_async(results.back(), options));
        }
        world().allreduce(allocated, options);
        for (const auto& work : works) work->wait();
        for (const auto& result : results) ASSERT_TRUE(are_equal(result, expected)) << count;
        ASSERT_EQ(std::memcmp(allocated.data(), expected.begin(), count * sizeof(TypeParam)), 0) << count;
      }
    }
  }
}

TYPED_TEST(BitwiseOfType, IsAPlainLoopInRankOrderInsideAHost) {
  if (world().backend_name() == "nccl") GTEST_SKIP() << "NCCL adds in an order of its own";
  if (ranks() > 1 && world().backend_name() != "shm") GTEST_SKIP() << "the ranks of each host are combined first";
  std::vector<double> weights;
  for (int from = 0; from < ranks(); ++from) weights.push_back(0.1 * (from + 1));
  double total_weight = 0;
  for (const double weight : weights) total_weight += weight;
  const std::vector<PlainScale> scales = {
      {}, {.divisor = static_cast<double>(ranks())}, {.weights = weights, .divisor = total_weight}, {.factor = 0.3}};
  const std::vector<ReduceOptions> options = all_options();
  for (const std::size_t count : counts) {
    std::vector<Elements<TypeParam>> inputs;
    for (int from = 0; from < ranks(); ++from) inputs.push_back(random_elements<TypeParam>(from, count, this->seed_));
    for (std::size_t which = 0; which < options.size(); ++which) {
      Elements<TypeParam> output(count);
      world().allreduce(as_const_buffer(inputs[rank_index()]), as_buffer(output), options[which]);
      Elements<TypeParam> expected(count);
      std::vector<TypeParam> column(inputs.size());
      for (std::size_t i = 0; i < count; ++i) {
        std::ranges::transform(inputs, column.begin(), [&](const auto& input) { return input.begin()[i]; });
        expected.begin()[i] = plain_reduce<TypeParam>(column, options[which].op, scales[which]);
      }
      ASSERT_TRUE(are_equal(output, expected)) << to_string(options[which].op) << " of " << count;
    }
  }
}

}  // namespace
}  // namespace fedrun
