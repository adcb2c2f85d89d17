// Every call of CUDA and NCCL fails once, on one rank: every rank is told, none hangs, and nothing is left behind.
#include <fedrun/collectives/cuda_handles.h>
#include <fedrun/core/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
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
using testing::HasSubstr;

constexpr std::size_t count = 1'000;

// What belongs to the test: it is made before anything is told to fail.
struct OwnThings {
  OwnThings() { check_cuda(cudaMemsetAsync(first.get(), 0, bytes, stream.get()), "cudaMemsetAsync"); }

  std::size_t bytes = count * static_cast<std::size_t>(ranks()) * sizeof(float);
  CudaStream stream{};
  DeviceMemory first{bytes};
  DeviceMemory second{bytes};
};

// One operation of each kind, on elements whose values do not matter.
void use_everything(Communicator& group, const OwnThings& own) {
  const auto& [bytes, stream, first, second] = own;
  const auto size = static_cast<std::size_t>(group.size());
  const auto buffer = [&](const DeviceMemory& memory, std::size_t elements, DataType type = DataType::f32) {
    return Buffer{memory.get(), elements, type, Device::cuda, stream.get()};
  };
  const std::vector<std::size_t> equal(size, count);
  std::vector<std::size_t> uneven(size, count / 2);
  uneven.back() += 1;
  const std::size_t total = (size - 1) * (count / 2) + count / 2 + 1;
  const std::size_t mine = uneven[static_cast<std::size_t>(group.rank())];
  const auto wait = [&](std::unique_ptr<Work> work) {
    work->wait_in_stream(stream.get());
    work->wait();
  };
  wait(group.allreduce_async(buffer(first, count), {.op = ReduceOp::sum, .prescale = 0.5}));
  wait(group.allreduce_async(buffer(first, count), {.weight = 3.0}));
  wait(group.allreduce_async(buffer(first, count), {.weight = group.rank() == 0 ? 0.0 : 3.0}));
  wait(group.allreduce_async(buffer(first, count), {.op = ReduceOp::sum, .weight = 0.0}));
  group.reduce_scatter(buffer(first, count * size), buffer(second, count), equal, {.op = ReduceOp::sum});
  group.reduce_scatter(buffer(first, total), buffer(second, mine), uneven, {.op = ReduceOp::sum});
  group.broadcast(buffer(first, count));
  group.allgather(buffer(first, count), buffer(second, count * size), equal);
  group.allgather(buffer(first, mine), buffer(second, total), uneven);
  group.gather(buffer(first, mine), buffer(second, group.rank() == 0 ? total : 0), uneven);
  group.alltoall(buffer(first, count * size), equal, buffer(second, count * size), equal);
  group.allreduce(buffer(first, count), {.op = ReduceOp::max});  // always goes through the host
  const Memory registered = group.allocate(count * sizeof(float), Device::cuda);
  group.allreduce(Buffer{registered.data(), count, DataType::f32, Device::cuda, stream.get()});
  // So that whoever has got through all this hears of an error there: the split begins in host memory.
  group.allreduce(buffer(first, count), {.op = ReduceOp::sum});
  Communicator part = group.split({.color = group.rank() % 2});
  // Errors of a part are told in that part only, and where NCCL connects hosts inside, this is its first allreduce.
  if (reach_of_nccl() != NcclReach::host) part.allreduce(buffer(second, count), {.op = ReduceOp::sum});
}

std::string live_things() { return control().describe_live(); }

// Nothing of what has been made since then is alive; threads of streams may need a moment.
void expect_live(const std::string& before) { EXPECT_EQ(live_things(), before); }

const std::vector<std::string> calls = {"cudaSetDevice",
                                        "cudaStreamCreateWithFlags",
                                        "cudaEventCreateWithFlags",
                                        "cudaEventRecord",
                                        "cudaStreamWaitEvent",
                                        "cudaEventQuery",
                                        "cudaFuncGetAttributes",
                                        "cudaMemPoolCreate",
                                        "cudaMemPoolSetAttribute",
                                        "cudaMallocFromPoolAsync",
                                        "cudaMemsetAsync",
                                        "cudaMemcpyAsync",
                                        "cudaLaunchKernel",
                                        "ncclGetUniqueId",
                                        "ncclMemAlloc",
                                        "ncclCommRegister",
                                        "ncclCommInitRankConfig",
                                        "ncclCommSplit",
                                        "ncclCommGetAsyncError",
                                        "async",
                                        "ncclGroupStart",
                                        "ncclGroupEnd",
                                        "ncclAllReduce",
                                        "ncclReduce",
                                        "ncclReduceScatter",
                                        "ncclBroadcast",
                                        "ncclAllGather",
                                        "ncclSend",
                                        "ncclRecv",
                                        "ncclRedOpCreatePreMulSum"};

// Does it all, on groups of its own; what is thrown, or "no error".
std::string outcome(const OwnThings& own) {
  try {
    Communicator group(make_device_world(std::chrono::seconds(20)));
    use_everything(group, own);
  } catch (const Error& error) {
    return std::string(error.kind()) + ": " + error.what();
  }
  return "no error";
}

TEST(DeviceFaults, NoneLeavesNothingBehind) {
  const std::string before = live_things();
  EXPECT_EQ(outcome(OwnThings()), "no error");
  expect_live(before);
}

class DeviceFaultsOf : public testing::TestWithParam<std::string> {};

TEST_P(DeviceFaultsOf, EveryRankIsTold) {
  const bool is_of_nccl = !GetParam().starts_with("cuda");
  if (is_of_nccl && reach_of_nccl() == NcclReach::nobody) GTEST_SKIP() << "NCCL does not connect the ranks";
  const auto start = std::chrono::steady_clock::now();
  // The first few calls, each time on another rank.
  for (int nth = 1; nth <= 4; ++nth) {
    process().world().barrier();
    const OwnThings own;
    const std::string before = live_things();
    const int calls_before = control().calls(GetParam());
    const int victim = nth % ranks();
    if (rank() == victim) control().fail(GetParam(), nth);
    const std::string told = outcome(own);
    control().fail_no_more();
    // What a rank never calls so often cannot fail there.
    int was_called = control().calls(GetParam()) - calls_before >= nth ? 1 : 0;
    process().world().broadcast(std::span(&was_called, 1), {.root = victim});
    if (was_called == 0) continue;
    EXPECT_THAT(told, testing::AnyOf(testing::StartsWith("BackendError"), testing::StartsWith("PeerLostError")))
        << GetParam() << " call " << nth << " on rank " << victim;
    if (rank() == victim) {
      EXPECT_THAT(told, testing::AnyOf(HasSubstr("CUDA: "), HasSubstr("NCCL: ")));
    }
    process().world().barrier();
    expect_live(before);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
}

INSTANTIATE_TEST_SUITE_P(Calls, DeviceFaultsOf, testing::ValuesIn(calls), [](const auto& one) { return one.param; });

// A group of all ranks whose waits end soon.
Communicator impatient_group() { return Communicator(make_device_world(std::chrono::seconds(2))); }

std::string reduce(Communicator& group, const OwnThings& own) {
  return text_of<PeerLostError>([&] {
    group.allreduce(Buffer{own.first.get(), count, DataType::f32, Device::cuda, own.stream.get()});
  });
}

TEST(DeviceFaults, AreToldBeforeNcclIsAborted) {
  if (ranks() == 1) GTEST_SKIP() << "there is nobody to tell";
  if (reach_of_nccl() == NcclReach::nobody) GTEST_SKIP() << "NCCL does not connect the ranks";
  const OwnThings own;
  Communicator group(make_device_world(std::chrono::seconds(20)));
  if (is_last_rank()) {
    control().fail("ncclGroupEnd", 1);
    control().fail("slow abort", 1);
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(group.allreduce(Buffer{own.first.get(), count, DataType::f32, Device::cuda, own.stream.get()}), Error);
  if (!is_last_rank()) {
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
  }
  control().fail_no_more();
  process().world().barrier();
}

TEST(DeviceStalls, ARankThatDoesNotComeIsNamed) {
  if (ranks() == 1) GTEST_SKIP() << "one rank waits for nobody";
  const OwnThings own;
  const std::string before = live_things();
  {
    Communicator group = impatient_group();
    if (is_last_rank()) {
      process().world().barrier();
      EXPECT_THAT(reduce(group, own), HasSubstr("has given up its GPU"));
    } else {
      EXPECT_THAT(reduce(group, own), testing::AnyOf(HasSubstr("missing: rank " + std::to_string(ranks() - 1)),
                                                     HasSubstr("has given up its GPU")));
      process().world().barrier();
    }
  }
  process().world().barrier();
  expect_live(before);
}

TEST(DeviceStalls, AKernelThatDoesNotEndIsAborted) {
  if (reach_of_nccl() == NcclReach::nobody) GTEST_SKIP() << "NCCL does not connect the ranks";
  const OwnThings own;
  const std::string before = live_things();
  {
    Communicator group = impatient_group();
    if (is_last_rank()) control().fail("stuck kernel", 1);
    EXPECT_THAT(reduce(group, own),
                testing::AnyOf(HasSubstr("FEDRUN_STALL_ABORT_SECONDS"), HasSubstr("has given up its GPU")));
    control().fail_no_more();
    EXPECT_THAT(text_of<BackendError>([&] {
                  group.allreduce(Buffer{own.first.get(), count, DataType::f32, Device::cuda, own.stream.get()});
                }),
                HasSubstr("the GPUs of this group were given up: "));
  }
  process().world().barrier();
  expect_live(before);
}

TEST(DeviceStalls, ARankThatDoesNotMakeTheGroupIsWaitedForNoLonger) {
  if (ranks() == 1) GTEST_SKIP() << "one rank waits for nobody";
  if (reach_of_nccl() == NcclReach::nobody) GTEST_SKIP() << "NCCL does not connect the ranks";
  const std::string before = live_things();
  if (is_last_rank()) control().fail("absent", 1);
  EXPECT_THAT(text_of<PeerLostError>([] { impatient_group(); }),
              testing::AnyOf(HasSubstr("has not finished in 2 s"), HasSubstr("has given up its GPU"),
                             HasSubstr("could not set up its GPU")));
  control().fail_no_more();
  process().world().barrier();
  expect_live(before);
}

}  // namespace
}  // namespace fedrun
