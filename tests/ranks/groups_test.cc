// Groups made from groups: any subset, any order, nested, and the memory that they share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "support/error_text.h"
#include "support/rank_test.h"
#include "support/rank_values.h"

namespace fedrun {
namespace {

using namespace test;
using testing::HasSubstr;

// Every list of different ranks, in every order: 64 of them for four ranks.
std::vector<std::vector<int>> all_lists(int size) {
  std::vector<std::vector<int>> lists;
  for (unsigned subset = 1; subset < 1U << size; ++subset) {
    std::vector<int> list;
    for (int each = 0; each < size; ++each) {
      if ((subset >> each) % 2 == 1) list.push_back(each);
    }
    do {
      lists.push_back(list);
    } while (std::ranges::next_permutation(list).found);
  }
  return lists;
}

// The members' numbers in the world, reduced, sent and gathered inside the group.
void expect_working(Communicator& group, const std::vector<int>& world_ranks) {
  ASSERT_EQ(group.size(), static_cast<int>(world_ranks.size()));
  ASSERT_EQ(world_ranks[static_cast<std::size_t>(group.rank())], rank());
  for (const std::size_t count : {1U, 4'097U}) {
    auto values = elements_of<std::int32_t>(rank(), count);
    group.allreduce(values, {.op = ReduceOp::sum});
    EXPECT_TRUE(match(values, [&](std::size_t i) { return reduced<std::int32_t>(ReduceOp::sum, world_ranks, i); }));
  }
  const auto all = group.allgather(std::array{static_cast<std::int32_t>(rank())});
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].front(), world_ranks[i]);
}

TEST(Groups, OfAnySubsetInAnyOrder) {
  for (const std::vector<int>& list : all_lists(std::min(ranks(), 4))) {
    std::optional<Communicator> group = world().group(list);
    ASSERT_EQ(group.has_value(), std::ranges::find(list, rank()) != list.end()) << testing::PrintToString(list);
    if (group) expect_working(*group, list);
  }
}

TEST(Groups, OfNobody) { EXPECT_FALSE(world().group({}).has_value()); }

TEST(Groups, Nest) {
  // The world in reverse, of which all but the first, of which those with even numbers.
  std::vector<int> reversed = first_ranks(ranks());
  std::ranges::reverse(reversed);
  std::optional<Communicator> outer = world().group(reversed);
  ASSERT_TRUE(outer.has_value());
  expect_working(*outer, reversed);
  std::vector<int> rest = first_ranks(ranks());
  rest.erase(rest.begin());
  std::optional<Communicator> middle = outer->group(rest);
  ASSERT_EQ(middle.has_value(), outer->rank() != 0);
  if (!middle) return;
  expect_working(*middle, {reversed.begin() + 1, reversed.end()});
  Communicator inner = middle->split({.color = middle->rank() % 2});
  std::vector<int> expected;
  for (int each = 1 + middle->rank() % 2; each < ranks(); each += 2) {
    expected.push_back(reversed[static_cast<std::size_t>(each)]);
  }
  expect_working(inner, expected);
}

TEST(Groups, OutliveTheOneTheyWereMadeFrom) {
  std::optional<Communicator> parent = world().split({});
  Communicator child = parent->split({});
  parent.reset();
  expect_working(child, first_ranks(ranks()));
}

TEST(Groups, NeedListsThatAgree) {
  if (ranks() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const std::vector<int> ours = {0, 1};
  const std::vector<int> theirs = {1, 0};
  EXPECT_THAT(mismatch_error_of([&] { world().group(is_last_rank() ? theirs : ours); }),
              HasSubstr("give different lists of ranks; rank " + std::to_string(rank()) + " gives [" +
                        (is_last_rank() ? "1, 0]" : "0, 1]")));
  EXPECT_EQ(sum_over(world(), 1), ranks());
}

TEST(Groups, SplitWithoutColorIsNoGroup) {
  if (ranks() == 1) GTEST_SKIP() << "somebody must stay";
  if (is_last_rank()) {
    EXPECT_THAT(usage_error_of([] { world().split({.color = std::nullopt}); }), HasSubstr("gave no color"));
  } else {
    Communicator rest = world().split({});
    expect_working(rest, first_ranks(ranks() - 1));
  }
  EXPECT_EQ(sum_over(world(), 1), ranks());
}

TEST(Groups, SplitByKeyThenByRank) {
  Communicator turned = world().split({.key = rank() == 0 ? 1 : 0});
  std::vector<int> expected = first_ranks(ranks());
  std::ranges::rotate(expected, expected.begin() + 1);
  expect_working(turned, expected);
}

// Memory of one group, reduced by another.
void expect_reducible(Communicator& group, const Memory& memory, std::size_t offset) {
  constexpr std::size_t count = 30'011;
  const std::span<float> values(static_cast<float*>(memory.data()) + offset, count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element<float>(group.rank(), i);
  group.allreduce(values, {.op = ReduceOp::sum});
  const auto sum = [&](std::size_t i) { return reduced<float>(ReduceOp::sum, first_ranks(group.size()), i); };
  EXPECT_TRUE(match(std::span<const float>(values), sum));
}

TEST(Groups, UseMemoryOfTheirAncestors) {
  const Memory memory = world().allocate(40'000 * sizeof(float));
  Communicator reversed = world().split({.key = -rank()});
  Communicator pair = reversed.split({.color = reversed.rank() / 2});
  // At another offset on every rank: what is shared is the memory, not the place in it.
  expect_reducible(world(), memory, 16 * rank_index());
  expect_reducible(reversed, memory, 16 * rank_index() + 1);
  expect_reducible(pair, memory, 100);
}

TEST(Groups, UseMemoryOfTheirRelativesAsIfItWereOrdinary) {
  Communicator pair = world().split({.color = rank() / 2});
  Communicator other = world().split({.color = rank() % 2});
  const Memory memory = pair.allocate(40'000 * sizeof(float));
  expect_reducible(pair, memory, 0);
  expect_reducible(other, memory, 0);
  expect_reducible(world(), memory, 0);
}

TEST(Groups, MemoryMayOutliveItsGroup) {
  std::optional<Memory> memory;
  {
    Communicator group = world().split({});
    memory.emplace(group.allocate(40'000 * sizeof(float)));
    expect_reducible(group, *memory, 0);
  }
  expect_reducible(world(), *memory, 0);
}

}  // namespace
}  // namespace fedrun
