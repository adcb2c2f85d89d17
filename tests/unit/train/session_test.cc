#include <fedrun/core/error.h>
#include <fedrun/train/session.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fedrun {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

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
  // The error of a build without CUDA, of a machine without a GPU, or of training, which does not know GPUs yet.
  EXPECT_THAT([&] { Session{env}; }, ThrowsMessage<Error>(HasSubstr("FEDRUN_DEVICE=cuda: ")));
}

}  // namespace
}  // namespace fedrun
