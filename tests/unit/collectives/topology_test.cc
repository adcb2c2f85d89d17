#include <fedrun/collectives/topology.h>
#include <fedrun/core/host_name.h>
#include <gtest/gtest.h>

namespace fedrun {
namespace {

TEST(FairShare, DividesSharedCores) {
  EXPECT_DOUBLE_EQ(fair_share_of_cores("1111", "1111"), 4);
  EXPECT_DOUBLE_EQ(fair_share_of_cores("1111", "11111111"), 2);
  EXPECT_DOUBLE_EQ(fair_share_of_cores("11", "11111111"), 0.5);
}

TEST(FairShare, KeepsCoresThatOthersMayNotUse) {
  EXPECT_DOUBLE_EQ(fair_share_of_cores("1100", "11000011"), 2);
  EXPECT_DOUBLE_EQ(fair_share_of_cores("1110", "11100001"), 3);
}

TEST(AssignCores, RoundsDownToAtLeastOne) {
  Topology topology;
  assign_cores(topology, 2.7);
  EXPECT_EQ(topology.cores, 2);
  EXPECT_TRUE(topology.has_own_core);
  assign_cores(topology, 1.0 / 3 + 1.0 / 3 + 1.0 / 3);
  EXPECT_EQ(topology.cores, 1);
  EXPECT_TRUE(topology.has_own_core);
  assign_cores(topology, 0.5);
  EXPECT_EQ(topology.cores, 1);
  EXPECT_FALSE(topology.has_own_core);
}

TEST(Affinity, NamesAtLeastOneCore) { EXPECT_NE(affinity_mask().find('1'), std::string::npos); }

TEST(HostName, IsNotEmpty) { EXPECT_FALSE(host_name().empty()); }

}  // namespace
}  // namespace fedrun
