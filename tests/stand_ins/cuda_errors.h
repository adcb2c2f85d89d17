// How the functions of the stand-in for CUDA answer.
#pragma once

#include <cuda_runtime_api.h>

namespace stand_in {

// Remembers an error for cudaGetLastError.
cudaError_t answer(cudaError_t result);

}  // namespace stand_in
