// What is too large for the board: all kinds of memory in one operation, many chunks, and running ahead.
#include <fedrun/core/error.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "support/rank_test.h"

namespace fedrun {
namespace {

using test::rank;
using test::ranks;
using test::world;

float sum_of_ranks() { return static_cast<float>(ranks() * (ranks() + 1) / 2); }
float mine() { return static_cast<float>(rank() + 1); }

bool all_are(std::span<const float> values, float expected) {
  return std::ranges::all_of(values, [&](float value) { return value == expected; });
}

// From inlined over one chunk to many.
constexpr std::size_t counts[] = {1, 1024, 1025, 8192, 8193, 100'003, 1'000'003};

TEST(Large, ReducesAllocatedMemoryInPlace) {
  for (const std::size_t count : counts) {
    const Memory memory = world().allocate(count * sizeof(float));
    const std::span<float> values(static_cast<float*>(memory.data()), count);
    for (int round = 0; round < 3; ++round) {
      std::ranges::fill(values, mine());
      world().allreduce(values, {.op = ReduceOp::sum});
      ASSERT_TRUE(all_are(values, sum_of_ranks())) << count;
    }
  }
}

TEST(Large, ReducesOrdinaryMemory) {
  for (const std::size_t count : counts) {
    std::vector<float> values(count, mine());
    world().allreduce(values, {.op = ReduceOp::sum});
    ASSERT_TRUE(all_are(values, sum_of_ranks())) << count;
    const std::vector<float> input(count, mine());
    std::vector<float> output(count);
    world().allreduce(as_const_buffer(input), as_buffer(output), {.op = ReduceOp::average});
    ASSERT_TRUE(all_are(output, sum_of_ranks() / static_cast<float>(ranks()))) << count;
  }
}

TEST(Large, MixesAllocatedAndOrdinaryMemoryAndOffsets) {
  constexpr std::size_t count = 200'000;
  const Memory memory = world().allocate(2 * count * sizeof(float));
  std::vector<float> ordinary(count);
  // Even ranks bring allocated memory, each at another offset; odd ranks bring ordinary memory.
  const std::size_t offset = 16 * static_cast<std::size_t>(rank());
  const std::span<float> values =
      rank() % 2 == 0 ? std::span(static_cast<float*>(memory.data()) + offset, count) : std::span(ordinary);
  std::ranges::fill(values, mine());
  world().allreduce(values, {.op = ReduceOp::sum});
  EXPECT_TRUE(all_are(values, sum_of_ranks()));
  for (int root = 0; root < ranks(); ++root) {
    std::ranges::fill(values, mine());
    world().broadcast(values, {.root = root});
    EXPECT_TRUE(all_are(values, static_cast<float>(root + 1)));
  }
}

TEST(Large, RunsFarAheadOfTheWaits) {
  // More operations than the control page has slots; waited for in reverse.
  std::deque<std::vector<float>> buffers;
  std::vector<std::unique_ptr<Work>> works;
  for (int i = 0; i < 500; ++i) {
    auto& buffer = buffers.emplace_back(i % 7 == 0 ? 20'000 : 17, mine() + static_cast<float>(i));
    works.push_back(world().allreduce_async(as_buffer(buffer), {.op = ReduceOp::max}));
  }
  while (!works.empty()) {
    works.back()->wait();
    works.pop_back();
  }
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(all_are(buffers[static_cast<std::size_t>(i)], static_cast<float>(ranks() + i))) << i;
  }
}

TEST(Large, RefusesAllocationsThatDiffer) {
  if (ranks() == 1) GTEST_SKIP() << "one rank agrees with itself";
  EXPECT_THROW(world().allocate(rank() == 0 ? 1 << 20 : 1 << 21), MismatchError);
  EXPECT_EQ(world().allocate(100).bytes(), 100U);
}

TEST(Large, ReleasesAndReusesAllocations) {
  for (int round = 0; round < 20; ++round) {
    const Memory first = world().allocate(1 << 16);
    const Memory second = world().allocate(1 << 20);
    const std::span<float> values(static_cast<float*>(second.data()), (1 << 20) / sizeof(float));
    std::ranges::fill(values, mine());
    world().allreduce(values, {.op = ReduceOp::sum});
    ASSERT_EQ(values.back(), sum_of_ranks());
  }
}

}  // namespace
}  // namespace fedrun
