// What NCCL 2.18 lacks: it neither allocates memory nor registers it, and copies through buffers of its own instead.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 19, 0)

inline ncclResult_t ncclMemAlloc(void** data, std::size_t bytes) {
  return cudaMalloc(data, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

inline ncclResult_t ncclMemFree(void* data) {
  return cudaFree(data) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

inline ncclResult_t ncclCommRegister(ncclComm_t /*communicator*/, void* /*data*/, std::size_t /*bytes*/,
                                     void** handle) {
  *handle = nullptr;
  return ncclSuccess;
}

inline ncclResult_t ncclCommDeregister(ncclComm_t /*communicator*/, void* /*handle*/) { return ncclSuccess; }

#endif
