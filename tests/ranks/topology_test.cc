// Where the ranks think that they sit, on one host or on several.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "support/rank_test.h"

namespace fedrun {
namespace {

bool is_one_host() { return test::process().topology().cross_size == 1; }

TEST(Process, AgreesWithTheLauncher) {
  const Topology& place = test::process().topology();
  ASSERT_NE(std::getenv("OMPI_COMM_WORLD_RANK"), nullptr) << "not started by mpirun";
  EXPECT_EQ(std::to_string(place.rank), std::getenv("OMPI_COMM_WORLD_RANK"));
  EXPECT_EQ(std::to_string(place.size), std::getenv("OMPI_COMM_WORLD_SIZE"));
  EXPECT_EQ(std::to_string(place.local_rank), std::getenv("OMPI_COMM_WORLD_LOCAL_RANK"));
  EXPECT_EQ(std::to_string(place.local_size), std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE"));
  EXPECT_EQ(test::world().rank(), place.rank);
  EXPECT_EQ(test::world().size(), place.size);
  const bool is_mpi_alone = test::process().env().backend == BackendChoice::mpi || place.cross_size == place.size;
  EXPECT_EQ(test::world().backend_name(), place.size == 1 ? "self"
                                          : is_mpi_alone  ? "mpi"
                                          : is_one_host() ? "shm"
                                                          : "shm+mpi");
}

TEST(Process, KnowsWhetherThisIsOneHost) {
  const Topology& place = test::process().topology();
  EXPECT_EQ(is_one_host(), place.local_size == place.size);
  EXPECT_LT(place.cross_rank, place.cross_size);
  EXPECT_TRUE(place.homogeneous || !is_one_host());
}

TEST(Process, DividesTheCoresUnlessTold) {
  const Topology& place = test::process().topology();
  EXPECT_GE(place.cores, 1);
  if (!test::process().env().threads && std::getenv("OMP_NUM_THREADS") == nullptr) {
    EXPECT_EQ(test::process().threads(), place.cores);
  }
}

}  // namespace
}  // namespace fedrun
