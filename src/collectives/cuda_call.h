// Turns what CUDA returns into errors that say which call it was.
#pragma once

#include <cuda_runtime_api.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>

#include <string_view>

namespace fedrun {

inline void check_cuda(cudaError_t result, std::string_view call) {
  if (result == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // it is reported here, so nobody else shall find it
  throw BackendError(fmt::format("CUDA: {}: {} ({})", call, cudaGetErrorString(result), cudaGetErrorName(result)));
}

}  // namespace fedrun
