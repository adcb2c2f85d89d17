// What the stand-in for CUDA must find out: tests that rely on it would otherwise pass whatever is wrong.
#include <cuda_runtime_api.h>
#include <fedrun/collectives/cuda_handles.h>
#include <fedrun/collectives/device_kernels.h>
#include <fedrun/collectives/feedback_kernels.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "stand_ins/stand_in_control.h"
#include "support/device_backend.h"

namespace fedrun {
namespace {

using stand_in::control;
using test::DeviceMemory;

constexpr std::size_t bytes = 4000;

class StandIn : public testing::Test {
 protected:
  void write(const CudaStream& stream, std::size_t first = 0, std::size_t count = bytes) {
    check_cuda(cudaMemsetAsync(static_cast<std::byte*>(memory_.get()) + first, 1, count, stream.get()), "memset");
  }
  static int violations() {
    const int count = control().violations();
    control().forgive();
    return count;
  }

  CudaStream one_;
  CudaStream other_;
  CudaEvent event_;
  DeviceMemory memory_{bytes};
};

TEST_F(StandIn, ReportsWritesOfTwoStreams) {
  write(one_);
  write(other_);
  EXPECT_EQ(violations(), 1);
}

TEST_F(StandIn, AllowsWhatAnEventOrders) {
  write(one_);
  event_.record(one_.get());
  event_.let_wait(other_.get());
  write(other_);
  EXPECT_EQ(violations(), 0);
}

TEST_F(StandIn, ReportsAnEventThatWasRecordedTooEarly) {
  event_.record(one_.get());
  write(one_);
  event_.let_wait(other_.get());
  write(other_);
  EXPECT_EQ(violations(), 1);
}

TEST_F(StandIn, AllowsWhatTheHostHasWaitedFor) {
  write(one_);
  check_cuda(cudaStreamSynchronize(one_.get()), "cudaStreamSynchronize");
  write(other_);
  event_.record(other_.get());
  while (!event_.has_happened()) continue;
  write(one_);
  EXPECT_EQ(violations(), 0);
}

TEST_F(StandIn, AllowsStreamsToUseDifferentParts) {
  write(one_, 0, bytes / 2);
  write(other_, bytes / 2, bytes / 2);
  EXPECT_EQ(violations(), 0);
  write(one_, bytes / 2 - 1, 2);
  EXPECT_EQ(violations(), 1);
}

TEST_F(StandIn, ReportsMemoryThatIsNotTheDevices) {
  const CopyPiece inside{memory_.get(), memory_.get(), bytes / sizeof(float)};
  copy_on_device({&inside, 1}, {}, one_.get());
  EXPECT_EQ(violations(), 0);
  write(one_, bytes - 1, 2);  // the page has room for it, the allocation has not
  EXPECT_EQ(violations(), 1);
}

TEST_F(StandIn, CountsWhatIsAlive) {
  const int events = control().live("event");
  {
    const CudaEvent another;
    EXPECT_EQ(control().live("event"), events + 1);
  }
  EXPECT_EQ(control().live("event"), events);
}

TEST_F(StandIn, HidesDeviceMemoryFromTheHost) { EXPECT_DEATH(*static_cast<volatile char*>(memory_.get()) = 1, ""); }

// More pieces than one launch takes, of awkward sizes, packed as f16 and unpacked again: the kernel's own launch code.
TEST_F(StandIn, PacksAndUnpacksManyPieces) {
  constexpr std::size_t pieces = 2 * most_pieces + 7;
  std::vector<std::size_t> counts(pieces);
  for (std::size_t i = 0; i < pieces; ++i) counts[i] = i % 40 == 0 ? 3'000 + i : i % 9;
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  std::vector<float> host(total);
  for (std::size_t i = 0; i < total; ++i) host[i] = static_cast<float>(i % 1000);
  const DeviceMemory tensors(total * sizeof(float));
  const DeviceMemory bucket(total * sizeof(F16));
  const DeviceMemory result(total * sizeof(float));
  check_cuda(cudaMemcpyAsync(tensors.get(), host.data(), total * sizeof(float), cudaMemcpyHostToDevice, one_.get()),
             "");
  std::vector<CopyPiece> pack;
  std::vector<CopyPiece> unpack;
  std::size_t first = 0;
  for (const std::size_t count : counts) {
    auto* packed = static_cast<F16*>(bucket.get()) + first;
    pack.push_back({static_cast<float*>(tensors.get()) + first, packed, count});
    unpack.push_back({packed, static_cast<float*>(result.get()) + first, count});
    first += count;
  }
  const int launches = control().calls("cudaLaunchKernel");
  copy_on_device(pack, {DataType::f32, DataType::f16, 0.5}, one_.get());
  EXPECT_EQ(control().calls("cudaLaunchKernel") - launches, 3);
  copy_on_device(unpack, {DataType::f16, DataType::f32, 4}, one_.get());
  std::vector<float> back(total);
  check_cuda(cudaMemcpyAsync(back.data(), result.get(), total * sizeof(float), cudaMemcpyDeviceToHost, one_.get()), "");
  check_cuda(cudaStreamSynchronize(one_.get()), "cudaStreamSynchronize");
  for (std::size_t i = 0; i < total; ++i) ASSERT_EQ(back[i], 2 * host[i]) << i;
  EXPECT_EQ(violations(), 0);
}

// Twice, so that what the first time leaves out comes with the second, in one launch each.
TEST_F(StandIn, RoundsWithFeedback) {
  constexpr std::size_t count = 5'001;
  std::vector<float> elements(count);
  for (std::size_t i = 0; i < count; ++i) elements[i] = static_cast<float>(i) * 1.0003F;
  std::vector<float> residuals(count);
  const std::size_t size = count * sizeof(float);
  const DeviceMemory on_device(size);
  const DeviceMemory left_out(size);
  check_cuda(cudaMemcpyAsync(on_device.get(), elements.data(), size, cudaMemcpyHostToDevice, one_.get()), "");
  check_cuda(cudaMemsetAsync(left_out.get(), 0, size, one_.get()), "");
  check_cuda(cudaStreamSynchronize(one_.get()), "cudaStreamSynchronize");  // the host goes on with its own
  const int launches = control().calls("cudaLaunchKernel");
  for (int time = 0; time < 2; ++time) {
    const Feedback feedback{.wire = DataType::bf16, .scale = 1.0F / 3};
    round_with_feedback({on_device.get(), count, DataType::f32, Device::cuda, one_.get()},
                        {left_out.get(), count, DataType::f32, Device::cuda, one_.get()}, feedback);
    round_with_feedback(as_buffer(elements), as_buffer(residuals), feedback);
  }
  EXPECT_EQ(control().calls("cudaLaunchKernel") - launches, 2);
  std::vector<float> back(count);
  std::vector<float> back_left_out(count);
  check_cuda(cudaMemcpyAsync(back.data(), on_device.get(), size, cudaMemcpyDeviceToHost, one_.get()), "");
  check_cuda(cudaMemcpyAsync(back_left_out.data(), left_out.get(), size, cudaMemcpyDeviceToHost, one_.get()), "");
  check_cuda(cudaStreamSynchronize(one_.get()), "cudaStreamSynchronize");
  EXPECT_EQ(back, elements);
  EXPECT_EQ(back_left_out, residuals);
  EXPECT_EQ(violations(), 0);
}

}  // namespace
}  // namespace fedrun
