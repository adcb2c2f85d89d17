// Elements on GPUs that go through the memory of the hosts: where ranks share a GPU, and between hosts.
#include <fedrun/collectives/cuda_handles.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "stand_ins/stand_in_control.h"
#include "support/device_backend.h"
#include "support/device_world.h"
#include "support/error_text.h"
#include "support/rank_test.h"

namespace fedrun {
namespace {

using namespace test;
using stand_in::control;

class DeviceStaging : public testing::Test {
 protected:
  static constexpr std::size_t large = 100'003;

  void SetUp() override {
    if (reach_ == NcclReach::group) GTEST_SKIP() << "NCCL connects all ranks";
  }

  // Adds up 1 on every rank, and counts the calls of a function meanwhile.
  int calls_of(const std::string& function, std::size_t count, Communicator& group) {
    const DeviceMemory memory(count * sizeof(float));
    std::vector<float> values(count, 1);
    copy(memory.get(), values.data(), count, cudaMemcpyHostToDevice);
    const int before = control().calls(function);
    group.allreduce(Buffer{memory.get(), count, DataType::f32, Device::cuda, stream_.get()}, {.op = ReduceOp::sum});
    const int calls = control().calls(function) - before;
    copy(values.data(), memory.get(), count, cudaMemcpyDeviceToHost);
    EXPECT_EQ(values, std::vector<float>(count, static_cast<float>(group.size())));
    return calls;
  }
  void copy(void* to, const void* from, std::size_t count, cudaMemcpyKind kind) {
    check_cuda(cudaMemcpyAsync(to, from, count * sizeof(float), kind, stream_.get()), "cudaMemcpyAsync");
    check_cuda(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
  }

  NcclReach reach_ = reach_of_nccl();
  CudaStream stream_;
  Communicator group_{make_device_world()};
};

TEST_F(DeviceStaging, UsesNcclOnlyInsideHostsAndForLargeBuffers) {
  const bool uses_nccl = reach_ == NcclReach::host;
  const std::size_t threshold = process().device_options().staged_below;
  if (threshold > sizeof(float)) {
    EXPECT_EQ(calls_of("ncclGroupEnd", threshold / sizeof(float) - 1, group_), 0);
  }
  EXPECT_EQ(calls_of("ncclGroupEnd", threshold / sizeof(float) + 1, group_), uses_nccl ? 2 : 0);
  EXPECT_EQ(calls_of("ncclAllReduce", large, group_), 0);
}

TEST_F(DeviceStaging, PinsMemoryOnceForOperationsOfOneSize) {
  calls_of("cudaHostRegister", large, group_);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(calls_of("cudaHostRegister", large, group_), 0);
}

TEST_F(DeviceStaging, GoesOnWithMemoryThatCannotBePinned) {
  constexpr std::size_t other_size = 7 * large;  // no block of it has been pinned before
  const int pinned = control().live("pinned block");
  if (is_last_rank()) control().fail("cudaHostRegister", 1);
  EXPECT_EQ(calls_of("cudaHostRegister", other_size, group_), 1);
  EXPECT_EQ(control().live("pinned block"), pinned + (is_last_rank() ? 0 : 1));
  control().fail_no_more();
}

// The host goes on as soon as the way back is on its stream, and what comes then on the caller's stream comes after it.
TEST_F(DeviceStaging, StreamsWaitForTheWayBack) {
  const DeviceMemory memory(large * sizeof(float));
  check_cuda(cudaMemsetAsync(memory.get(), 0, large * sizeof(float), stream_.get()), "cudaMemsetAsync");
  const int synchronized = control().calls("cudaStreamSynchronize");
  for (int i = 0; i < 5; ++i) {
    group_.allreduce_async(Buffer{memory.get(), large, DataType::f32, Device::cuda, stream_.get()}, {.name = "bucket"})
        ->wait_in_stream(stream_.get());
    check_cuda(cudaMemsetAsync(memory.get(), 0, large * sizeof(float), stream_.get()), "cudaMemsetAsync");
  }
  EXPECT_EQ(control().calls("cudaStreamSynchronize"), synchronized);
}

TEST_F(DeviceStaging, AGroupThatEndsWaitsForItsCopies) {
  const DeviceMemory memory(large * sizeof(float));
  std::vector<float> values(large, 1);
  copy(memory.get(), values.data(), large, cudaMemcpyHostToDevice);
  {
    Communicator part = group_.split({.key = -group_.rank()});
    part.allreduce_async(Buffer{memory.get(), large, DataType::f32, Device::cuda, stream_.get()}, {.op = ReduceOp::sum})
        ->wait_in_stream(stream_.get());
  }
  calls_of("cudaHostRegister", large, group_);  // takes the same blocks
  copy(values.data(), memory.get(), large, cudaMemcpyDeviceToHost);
  EXPECT_EQ(values, std::vector<float>(large, static_cast<float>(ranks())));
}

TEST_F(DeviceStaging, MismatchesGiveTheirBlocksBack) {
  if (ranks() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const DeviceMemory memory(large * sizeof(float));
  check_cuda(cudaMemsetAsync(memory.get(), 0, large * sizeof(float), stream_.get()), "cudaMemsetAsync");
  const auto disagree = [&] {
    const ReduceOp op = rank() == 0 ? ReduceOp::min : ReduceOp::max;
    EXPECT_THAT(mismatch_error_of([&] {
                  group_.broadcast(Buffer{memory.get(), large, DataType::f32, Device::cuda, stream_.get()},
                                   {.root = op == ReduceOp::min ? 0 : 1});
                }),
                testing::HasSubstr("on a GPU"));
  };
  for (int i = 0; i < 4; ++i) disagree();
  const int pinned = control().live("pinned block");
  for (int i = 0; i < 20; ++i) {
    disagree();
    calls_of("cudaHostRegister", large, group_);
  }
  EXPECT_LE(control().live("pinned block"), pinned + 3);
}

// Where each rank of a group has a GPU of its own, NCCL connects them.
TEST_F(DeviceStaging, AGroupWithoutSharersUsesNccl) {
  if (process().env().gpu_across_hosts == AcrossHosts::mpi) GTEST_SKIP() << "hosts are connected by MPI";
  Communicator alone = group_.split({.color = group_.rank()});
  EXPECT_EQ(calls_of("ncclAllReduce", large, alone), 1);
}

TEST(SharedGpu, NcclRefusesIt) {
  if (process().env().gpu_across_hosts == AcrossHosts::mpi || reach_of_nccl() != NcclReach::nobody) {
    GTEST_SKIP() << "nobody shares a GPU";
  }
  // As if the ranks did not know that they share one.
  DeviceOptions options = process().device_options();
  options.gpu_id = 0;
  EXPECT_THAT(text_of<Error>([&] { Communicator(make_device_world(std::chrono::seconds(10), options)); }),
              testing::AnyOf(testing::HasSubstr("Duplicate GPU detected"), testing::HasSubstr("could not set up"),
                             testing::HasSubstr("has given up its GPU")));
}

}  // namespace
}  // namespace fedrun
