// Every rank gets its part of the reduced input: equal parts, uneven ones, none.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "support/rank_test.h"
#include "support/rank_values.h"

namespace fedrun {
namespace {

using namespace test;

using Counts = std::vector<std::size_t>;

// Where this rank's part begins.
std::size_t first_of_mine(const Counts& counts) { return total({counts.begin(), counts.begin() + rank()}); }

template <typename T>
testing::AssertionResult is_my_part(const Elements<T>& part, ReduceOp op, const Counts& counts) {
  return match(
      part, [&](std::size_t index) { return reduced<T>(op, first_ranks(ranks()), index); }, first_of_mine(counts));
}

// Rank r gets r times `unit` elements and one more: rank 0 nearly nothing.
Counts growing_counts(std::size_t unit) {
  Counts counts;
  for (int each = 0; each < ranks(); ++each) counts.push_back(static_cast<std::size_t>(each) * unit + 1);
  return counts;
}
// One rank gets everything.
Counts lonely_counts(std::size_t count, int owner) {
  Counts counts(static_cast<std::size_t>(ranks()), 0);
  counts[static_cast<std::size_t>(owner)] = count;
  return counts;
}

template <typename T>
class ReduceScatterOfType : public testing::Test {};
TYPED_TEST_SUITE(ReduceScatterOfType, AllTypes);

TYPED_TEST(ReduceScatterOfType, InEqualParts) {
  for (const ReduceOp op : reduce_ops) {
    if (!has<TypeParam>(op)) continue;
    for (const std::size_t count : awkward_counts) {
      const auto input = elements_of<TypeParam>(rank(), count);
      const Counts counts = world().equal_parts(count);
      Elements<TypeParam> part(counts[rank_index()]);
      world().reduce_scatter(as_const_buffer(input), as_buffer(part), {.op = op});
      ASSERT_TRUE(is_my_part(part, op, counts)) << to_string(op) << " of " << count;
      ASSERT_TRUE(are_elements_of(rank(), std::span<const TypeParam>(input)));
    }
  }
}

TYPED_TEST(ReduceScatterOfType, InUnevenPartsAllAtOnce) {
  std::vector<Counts> all_counts = {growing_counts(0), growing_counts(17), growing_counts(4913),
                                    growing_counts(33'333)};
  for (int owner = 0; owner < ranks(); ++owner) {
    all_counts.push_back(lonely_counts(289, owner));
    all_counts.push_back(lonely_counts(20'011, owner));
  }
  std::vector<Elements<TypeParam>> inputs;
  std::vector<Elements<TypeParam>> parts;
  std::vector<std::unique_ptr<Work>> works;
  for (const Counts& counts : all_counts) {
    const Elements<TypeParam>& input = inputs.emplace_back(elements_of<TypeParam>(rank(), total(counts)));
    Elements<TypeParam>& part = parts.emplace_back(counts[rank_index()]);
    works.push_back(
        world().reduce_scatter_async(as_const_buffer(input), as_buffer(part), counts, {.op = ReduceOp::max}));
  }
  for (std::size_t i = 0; i < works.size(); ++i) {
    works[i]->wait();
    ASSERT_TRUE(is_my_part(parts[i], ReduceOp::max, all_counts[i])) << "case " << i;
  }
}

}  // namespace
}  // namespace fedrun
