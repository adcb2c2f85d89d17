// A process that no launcher has started is a run of one rank, and believes no list of GPUs for more.
#include <fedrun/collectives/process.h>
#include <gtest/gtest.h>

#include "support/error_text.h"

namespace fedrun {
namespace {

TEST(Process, KnowsItsGpuFromTheMapping) {
  RunEnv env;
  EXPECT_EQ(Process(env).gpu(), std::nullopt);
  env.gpu_of_rank = {3};
  EXPECT_EQ(Process(env).gpu(), 3);
}

TEST(Process, RefusesAMappingForAnotherNumberOfRanks) {
  RunEnv env;
  env.gpu_of_rank = {0, 1};
  EXPECT_EQ(test::usage_error_of([&] { Process process(env); }),
            "FEDRUN_GPU_OF_RANK has GPUs for 2 ranks, and this run has 1: unset it, and pass the mapping by fedrun "
            "--gpu-mapping");
}

}  // namespace
}  // namespace fedrun
