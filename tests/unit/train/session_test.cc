#include <fedrun/core/error.h>
#include <fedrun/train/session.h>
#include <gtest/gtest.h>

namespace fedrun {
namespace {

TEST(Session, RunsAloneWithoutALauncher) {
  RunEnv env;
  env.threads = 1;
  Session session(env);
  EXPECT_EQ(session.size(), 1);
  EXPECT_EQ(session.world().backend_name(), "self");
  EXPECT_EQ(session.device(), torch::Device(torch::kCPU));
  EXPECT_EQ(torch::get_num_threads(), 1);
}

TEST(Session, RefusesDevicesThatThisVersionCannotUse) {
  RunEnv env;
  env.device = DeviceChoice::cuda;
  EXPECT_THROW(Session{env}, UsageError);
}

}  // namespace
}  // namespace fedrun
