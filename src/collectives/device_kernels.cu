#include <fedrun/collectives/device_kernels.h>
#include <fedrun/collectives/device_launch.h>

namespace fedrun {
namespace {

constexpr unsigned threads_per_block = 256;

// Enough to fill a large GPU several times over; each thread takes as many elements as it must.
constexpr unsigned most_blocks = 2048;
constexpr std::uint64_t elements_per_thread = 4;

unsigned blocks_for(std::uint64_t count) {
  const std::uint64_t per_block = threads_per_block * elements_per_thread;
  const std::uint64_t blocks = (count + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks);
}

}  // namespace

// A row of blocks for each piece. The types are looked at once per thread, not once per element.
extern "C" __global__ void __launch_bounds__(threads_per_block) fedrun_copy_pieces(const CopyArguments arguments) {
  const std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  copy_share(arguments, arguments.pieces[blockIdx.y], first, std::uint64_t{gridDim.x} * blockDim.x);
}

extern "C" __global__ void __launch_bounds__(threads_per_block) fedrun_fill(const FillArguments arguments) {
  const std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  fill_share(arguments, first, std::uint64_t{gridDim.x} * blockDim.x);
}

extern "C" __global__ void __launch_bounds__(threads_per_block) fedrun_feedback(const FeedbackArguments arguments) {
  const std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  feedback_share(arguments, first, std::uint64_t{gridDim.x} * blockDim.x);
}

cudaError_t launch_copy(const CopyArguments& arguments, std::uint64_t longest, cudaStream_t stream) {
  const dim3 grid(blocks_for(longest), arguments.piece_count);
  fedrun_copy_pieces<<<grid, threads_per_block, 0, stream>>>(arguments);
  return cudaGetLastError();
}

cudaError_t launch_fill(const FillArguments& arguments, cudaStream_t stream) {
  fedrun_fill<<<blocks_for(arguments.count), threads_per_block, 0, stream>>>(arguments);
  return cudaGetLastError();
}

cudaError_t launch_feedback(const FeedbackArguments& arguments, cudaStream_t stream) {
  fedrun_feedback<<<blocks_for(arguments.count), threads_per_block, 0, stream>>>(arguments);
  return cudaGetLastError();
}

}  // namespace fedrun
