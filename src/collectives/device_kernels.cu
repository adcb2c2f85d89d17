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

// Its own result, not the last error of the thread, which somebody else may have left there.
template <typename Arguments>
cudaError_t launch(void (*kernel)(Arguments), dim3 grid, Arguments arguments, cudaStream_t stream) {
  void* parameters[] = {&arguments};
  return cudaLaunchKernel(kernel, grid, dim3(threads_per_block), parameters, 0, stream);
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
  return launch(fedrun_copy_pieces, dim3(blocks_for(longest), arguments.piece_count), arguments, stream);
}

cudaError_t launch_fill(const FillArguments& arguments, cudaStream_t stream) {
  return launch(fedrun_fill, dim3(blocks_for(arguments.count)), arguments, stream);
}

cudaError_t launch_feedback(const FeedbackArguments& arguments, cudaStream_t stream) {
  return launch(fedrun_feedback, dim3(blocks_for(arguments.count)), arguments, stream);
}

cudaError_t load_kernels() {
  cudaFuncAttributes attributes{};
  cudaError_t result = cudaFuncGetAttributes(&attributes, fedrun_copy_pieces);
  if (result == cudaSuccess) result = cudaFuncGetAttributes(&attributes, fedrun_fill);
  if (result == cudaSuccess) result = cudaFuncGetAttributes(&attributes, fedrun_feedback);
  return result;
}

}  // namespace fedrun
