// The one line between what nvcc compiles and what the host's compiler does: nvcc sees neither fmt nor our errors.
#pragma once

#include <cuda_runtime_api.h>
#include <fedrun/collectives/device_elements.h>

#include <cstdint>

namespace fedrun {

// No piece is longer than `longest`, and at least one has elements.
cudaError_t launch_copy(const CopyArguments& arguments, std::uint64_t longest, cudaStream_t stream);
cudaError_t launch_fill(const FillArguments& arguments, cudaStream_t stream);
cudaError_t launch_feedback(const FeedbackArguments& arguments, cudaStream_t stream);

cudaError_t load_kernels();  // for the thread's current GPU

}  // namespace fedrun
