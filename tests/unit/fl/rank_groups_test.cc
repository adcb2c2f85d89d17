#include <fedrun/fl/rank_groups.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"

namespace fedrun::fl {
namespace {

using test::usage_error_of;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<int> two_hosts = {0, 0, 0, 1, 1};

TEST(GroupOfEachRank, FollowsTheOptions) {
  EXPECT_THAT(group_of_each_rank(two_hosts, {}), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(group_of_each_rank(two_hosts, {.count = 2}), ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(group_of_each_rank(two_hosts, {.by_host = true}), ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(group_of_each_rank(two_hosts, {.lists = {{4, 0}, {1, 2, 3}}}), ElementsAre(0, 1, 1, 1, 0));
}

TEST(GroupOfEachRank, SpansHostsOnlyWhereItMust) {
  EXPECT_THAT(group_of_each_rank(two_hosts, {.count = 1}), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(group_of_each_rank(two_hosts, {.count = 3}), ElementsAre(0, 0, 1, 2, 2));
  EXPECT_THAT(group_of_each_rank(two_hosts, {.count = 4}), ElementsAre(0, 0, 1, 2, 3));
  EXPECT_THAT(group_of_each_rank(two_hosts, {.count = 5}), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(group_of_each_rank({0, 1, 1, 1}, {.count = 2}), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(group_of_each_rank({0, 1, 0, 1}, {.count = 2}), ElementsAre(0, 1, 0, 1)) << "ranks dealt out by turns";
  EXPECT_THAT(group_of_each_rank({0, 1, 2, 3}, {.count = 2}), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(group_of_each_rank({0, 0, 0, 0, 1, 2}, {.count = 2}), ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(group_of_each_rank({0, 1, 2, 2, 2, 2}, {.count = 2}), ElementsAre(0, 0, 1, 1, 1, 1));
  EXPECT_THAT(group_of_each_rank({0, 1, 1, 1, 1, 2}, {.count = 3}), ElementsAre(0, 1, 1, 1, 1, 2));
}

TEST(GroupOfEachRank, RefusesWhatCannotBe) {
  EXPECT_EQ(usage_error_of([] { group_of_each_rank(two_hosts, {.count = 6}); }),
            "5 ranks cannot form 6 groups: choose a number from 1 to 5");
  EXPECT_THAT(usage_error_of([] { group_of_each_rank(two_hosts, {.count = 2, .by_host = true}); }),
              HasSubstr("more than one way"));
  EXPECT_EQ(usage_error_of([] {
              group_of_each_rank(two_hosts, {.lists = {{0, 1}, {1, 2, 3, 4}}});
            }),
            "rank 1 is in the rank groups 0 and 1");
  EXPECT_EQ(usage_error_of([] {
              group_of_each_rank(two_hosts, {.lists = {{0, 1}, {3, 4}}});
            }),
            "rank 2 is in no rank group: every rank trains");
  EXPECT_EQ(usage_error_of([] {
              group_of_each_rank(two_hosts, {.lists = {{0, 5}}});
            }),
            "rank group 0 lists rank 5, but there are 5 ranks");
  EXPECT_THAT(usage_error_of([] { group_of_each_rank(two_hosts, {.lists = {{}}}); }), HasSubstr("has no ranks"));
}

}  // namespace
}  // namespace fedrun::fl
