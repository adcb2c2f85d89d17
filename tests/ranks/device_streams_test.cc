// When operations on devices are launched, and who waits for them.
#include <fedrun/collectives/cuda_handles.h>
#include <fedrun/core/error.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "stand_ins/stand_in_control.h"
#include "support/device_backend.h"
#include "support/device_world.h"
#include "support/rank_test.h"

namespace fedrun {
namespace {

using namespace test;
using stand_in::control;

constexpr std::size_t count = 1'000;

class DeviceStreams : public testing::Test {
 protected:
  DeviceStreams() { fill(1); }

  void TearDown() override { process().world().barrier(); }  // others may still need memory of this rank's group

  void fill(float value) {
    host_.assign(count, value);
    copy(memory_.get(), host_.data(), cudaMemcpyHostToDevice);
  }
  std::vector<float> read(const void* from) {
    std::vector<float> values(count);
    copy(values.data(), from, cudaMemcpyDeviceToHost);
    return values;
  }
  void copy(void* to, const void* from, cudaMemcpyKind kind) {
    check_cuda(cudaMemcpyAsync(to, from, count * sizeof(float), kind, stream_.get()), "cudaMemcpyAsync");
    check_cuda(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
  }
  Buffer buffer(void* data) const { return {data, count, DataType::f32, Device::cuda, stream_.get()}; }
  Buffer buffer() const { return buffer(memory_.get()); }

  std::vector<float> host_;
  CudaStream stream_;
  DeviceMemory memory_{count * sizeof(float)};
  Communicator group_{make_device_world(std::chrono::seconds(3))};
};

TEST_F(DeviceStreams, SubmittingLaunchesWhatIsReady) {
  if (reach_of_nccl() != NcclReach::group) GTEST_SKIP() << "NCCL does not connect the ranks";
  const DeviceMemory other(count * sizeof(float));
  check_cuda(cudaMemsetAsync(other.get(), 0, count * sizeof(float), stream_.get()), "cudaMemsetAsync");
  const int launches = control().calls("ncclAllReduce");
  const auto first = group_.allreduce_async(buffer(), {.op = ReduceOp::sum});
  process().world().barrier();  // everyone has arrived
  // Ranks of other hosts learn by a message what is to be launched, and may submit more before it comes.
  const bool hears_by_messages = process().env().backend == BackendChoice::mpi;
  std::vector<std::unique_ptr<Work>> others;
  for (int i = 0; i < (hears_by_messages ? 10 : 1); ++i) {
    if (hears_by_messages) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    others.push_back(group_.allreduce_async(buffer(other.get()), {.op = ReduceOp::sum}));
  }
  EXPECT_GT(control().calls("ncclAllReduce"), launches) << "backward would not overlap";
  first->wait();
  for (const auto& work : others) work->wait();
  EXPECT_EQ(read(memory_.get()), std::vector<float>(count, static_cast<float>(ranks())));
}

TEST_F(DeviceStreams, LetTheHostGoOn) {
  if (reach_of_nccl() != NcclReach::group) GTEST_SKIP() << "NCCL does not connect the ranks";
  if (is_last_rank()) control().fail("stuck kernel", 1);
  {
    const auto work = group_.allreduce_async(buffer(), {.op = ReduceOp::sum});
    const auto start = std::chrono::steady_clock::now();
    work->wait_in_stream(stream_.get());
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2)) << "the host waited for the kernel";
    EXPECT_FALSE(work->done());
    EXPECT_THROW(work->wait(), PeerLostError);
  }
  control().fail_no_more();
  process().world().barrier();
}

TEST_F(DeviceStreams, NamesAreFreeOnceTheStreamWaits) {
  for (int step = 0; step < 5; ++step) {
    group_.allreduce_async(buffer(), {.op = ReduceOp::max, .name = "bucket"})->wait_in_stream(stream_.get());
  }
  group_.barrier();
  const auto last = group_.allreduce_async(buffer(), {.op = ReduceOp::max, .name = "bucket"});
  last->wait();
  EXPECT_EQ(read(memory_.get()), std::vector<float>(count, 1));
}

TEST_F(DeviceStreams, AllocatedMemoryIsZeroedAndReduced) {
  const Memory memory = group_.allocate(count * sizeof(float), Device::cuda);
  EXPECT_EQ(read(memory.data()), std::vector<float>(count, 0));
  copy(memory.data(), host_.data(), cudaMemcpyHostToDevice);
  group_.allreduce(buffer(memory.data()), {.op = ReduceOp::sum});
  EXPECT_EQ(read(memory.data()), std::vector<float>(count, static_cast<float>(ranks())));
}

TEST_F(DeviceStreams, MemoryIsAllocatedWhileAnOperationIsBeingLaunched) {
  const auto work = group_.allreduce_async(buffer(), {.op = ReduceOp::sum});
  const Memory memory = group_.allocate(count * sizeof(float), Device::cuda);
  work->wait();
  EXPECT_EQ(read(memory.data()), std::vector<float>(count, 0));
}

TEST_F(DeviceStreams, AllocatedMemoryIsKeptUntilTheStreamHasUsedIt) {
  Memory memory = group_.allocate(count * sizeof(float), Device::cuda);
  group_.allreduce_async(buffer(memory.data()), {.op = ReduceOp::sum})->wait_in_stream(stream_.get());
}

// The stand-in reports ranks that bring different kinds of memory.
TEST_F(DeviceStreams, AllocatedMemoryIsReducedWithWeights) {
  const Memory memory = group_.allocate(count * sizeof(float), Device::cuda);
  copy(memory.data(), host_.data(), cudaMemcpyHostToDevice);
  group_.allreduce(buffer(memory.data()), {.op = ReduceOp::sum, .weight = group_.rank() == 0 ? 1.0 : 3.0});
  EXPECT_EQ(read(memory.data()), std::vector<float>(count, static_cast<float>(1 + 3 * (ranks() - 1))));
}

TEST_F(DeviceStreams, AllocatedMemoryIsReducedWithoutWhoHasJoined) {
  const Memory memory = group_.allocate(count * sizeof(float), Device::cuda);
  copy(memory.data(), host_.data(), cudaMemcpyHostToDevice);
  if (group_.rank() != 0 || ranks() == 1) group_.allreduce(buffer(memory.data()), {.op = ReduceOp::average});
  group_.join();
  EXPECT_EQ(read(memory.data()), std::vector<float>(count, 1));
}

TEST_F(DeviceStreams, AGroupIsMadeWhileItsParentIsBusy) {
  const auto work = group_.allreduce_async(buffer(), {.op = ReduceOp::sum});
  work->wait_in_stream(stream_.get());
  Communicator child = group_.split({.key = -group_.rank()});
  work->wait();
  child.allreduce(buffer(), {.op = ReduceOp::sum});
  EXPECT_EQ(read(memory_.get()), std::vector<float>(count, static_cast<float>(ranks() * ranks())));
}

}  // namespace
}  // namespace fedrun
