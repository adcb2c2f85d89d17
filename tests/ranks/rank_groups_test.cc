// Adds up across groups of every shape that the ranks of the run can form.
#include <fedrun/fl/rank_groups.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "support/rank_test.h"

namespace fedrun::fl {
namespace {

using test::rank;
using test::ranks;
using test::world;
using testing::Each;

TEST(RankGroups, EveryRankIsAGroupUnlessSomethingElseIsSaid) {
  RankGroups groups(world());
  EXPECT_EQ(groups.count(), ranks());
  EXPECT_EQ(groups.group(), rank());
  EXPECT_EQ(groups.inner().size(), 1);
}

TEST(RankGroups, FollowHosts) {
  RankGroups groups(world(), {.by_host = true});
  EXPECT_EQ(groups.inner().size(), test::process().local_size());
  EXPECT_EQ(groups.inner().rank(), test::process().local_rank());
}

TEST(RankGroups, AddUpOncePerGroup) {
  for (int count = 1; count <= ranks(); ++count) {
    RankGroups groups(world(), {.count = count});
    for (const std::size_t elements : {0, 1, 7, 1023, 1024, 1025}) {
      SCOPED_TRACE(testing::Message() << count << " groups, " << elements << " elements");
      std::vector<float> values(elements, static_cast<float>(groups.group() + 1));
      groups.sum_across(as_buffer(values));
      EXPECT_THAT(values, Each(static_cast<float>(count * (count + 1) / 2)));
    }
  }
}

TEST(RankGroups, TakeListsInAnyOrder) {
  std::vector<int> others(static_cast<std::size_t>(ranks() - 1));
  std::iota(others.begin(), others.end(), 0);
  RankGroupsOptions options{.lists = {{ranks() - 1}}};
  if (!others.empty()) options.lists.push_back(others);
  RankGroups groups(world(), options);
  EXPECT_EQ(groups.group(), test::is_last_rank() ? 0 : 1);
  std::vector<std::int64_t> values(10, test::is_last_rank() ? 100 : 1);
  groups.sum_across(as_buffer(values));
  EXPECT_THAT(values, Each(ranks() == 1 ? 100 : 101));
}

}  // namespace
}  // namespace fedrun::fl
