// What a run does without a GPU: it says why, once, and goes on; unless it was told to use one.
#include <fedrun/collectives/nccl_runtime.h>
#include <fedrun/collectives/process.h>
#include <fedrun/core/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "support/error_text.h"

namespace fedrun {
namespace {

using testing::HasSubstr;

class WithoutGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (found_.gpu) GTEST_SKIP() << "this host has a GPU";
  }
  // What a run with this choice writes.
  static std::string words_of(DeviceChoice choice) {
    testing::internal::CaptureStderr();
    RunEnv env;
    env.backend = BackendChoice::self;
    env.device = choice;
    Process process(env);
    EXPECT_FALSE(process.gpu_in_use().has_value());
    std::array<float, 3> values = {1, 2, 3};
    process.world().allreduce(values);
    EXPECT_EQ(values[2], 3);
    EXPECT_THAT(test::usage_error_of([&] {
                  process.world().allreduce(Buffer{values.data(), 3, DataType::f32, Device::cuda});
                }),
                HasSubstr("its elements lie on a GPU, and this run uses none"));
    EXPECT_THAT(test::usage_error_of([&] { process.world().allocate(8, Device::cuda); }), HasSubstr("uses no GPUs"));
    return testing::internal::GetCapturedStderr();
  }

  GpuFinding found_ = find_gpu(std::nullopt, {});
};

TEST_F(WithoutGpu, ARunSaysWhyInOneLine) {
  const std::string words = words_of(DeviceChoice::automatic);
  if (!found_.is_expected) {
    EXPECT_EQ(words, "") << "nobody who builds without CUDA expects a GPU";
    return;
  }
  EXPECT_THAT(words, HasSubstr("this run uses the CPU, and no GPU: CUDA says on host "));
  EXPECT_EQ(std::ranges::count(words, '\n'), 1);
}

TEST_F(WithoutGpu, ARunThatShallUseTheCpuSaysNothing) { EXPECT_EQ(words_of(DeviceChoice::cpu), ""); }

TEST_F(WithoutGpu, ARunThatMustHaveOneFails) {
  RunEnv env;
  env.backend = BackendChoice::self;
  env.device = DeviceChoice::cuda;
  EXPECT_THAT(test::text_of<BackendError>([&] { Process process(env); }), HasSubstr("FEDRUN_DEVICE=cuda: "));
}

TEST(DeviceArguments, LieOnOneSide) {
  RunEnv env;
  env.backend = BackendChoice::self;
  env.device = DeviceChoice::cpu;
  Process process(env);
  std::array<float, 3> values{};
  const Buffer host = as_buffer(values);
  const Buffer device{values.data(), 3, DataType::f32, Device::cuda};
  EXPECT_THAT(test::usage_error_of([&] { process.world().allreduce(host, device); }),
              HasSubstr("allreduce: the input lies on the CPU, the output on the GPU"));
  EXPECT_THAT(test::usage_error_of([&] { process.world().allreduce(device, {.op = ReduceOp::adasum}); }),
              HasSubstr("Adasum works on elements in host memory"));
}

}  // namespace
}  // namespace fedrun
