// Which ranks of a group NCCL connects: everyone must come to the same answer, so it is worked out from the group
// alone.
#include <fedrun/collectives/group.h>
#include <gtest/gtest.h>

namespace fedrun {
namespace {

struct Case {
  std::vector<int> hosts;
  std::vector<std::uint64_t> gpus;
  NcclReach by_nccl;
  NcclReach by_mpi;  // across hosts
};

TEST(Group, KnowsWhomNcclConnects) {
  using enum NcclReach;
  for (const Case& each : std::vector<Case>{
           {{0}, {7}, group, group},
           {{0, 0, 0}, {1, 2, 3}, group, group},
           {{0, 0, 0}, {1, 2, 1}, nobody, nobody},
           {{0, 0, 0}, {0, 0, 0}, group, group},  // each has one, whatever it is
           {{0, 0, 1, 1}, {1, 2, 3, 4}, group, host},
           {{0, 1, 1}, {1, 2, 3}, group, host},
           {{0, 1, 2}, {1, 2, 3}, group, nobody},  // inside a host there is nothing to do
           {{0, 0, 1, 1}, {1, 2, 3, 3}, nobody, nobody},
           {{0, 1}, {1, 1}, nobody, nobody},  // the mpi backend treats every rank as a host of its own
       }) {
    Group made;
    made.world_ranks.resize(each.hosts.size());
    made.assign_hosts(each.hosts);
    made.gpu_of = each.gpus;
    EXPECT_EQ(made.nccl_reach(false), each.by_nccl) << testing::PrintToString(each.hosts);
    EXPECT_EQ(made.nccl_reach(true), each.by_mpi) << testing::PrintToString(each.hosts);
  }
}

TEST(Group, KnowsItsIndexOnItsHost) {
  Group made;
  made.world_ranks.resize(4);
  made.assign_hosts({0, 1, 0, 1});
  for (const auto& [rank, index] : std::vector<std::pair<int, std::size_t>>{{0, 0}, {1, 0}, {2, 1}, {3, 1}}) {
    made.rank = rank;
    EXPECT_EQ(made.index_on_host(), index);
  }
}

}  // namespace
}  // namespace fedrun
