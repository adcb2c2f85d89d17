// Owns what CUDA hands out: streams, events, and scratch memory that is freed in the order of a stream.
#pragma once

#include <cuda_runtime_api.h>
#include <fedrun/collectives/cuda_call.h>

#include <cstddef>
#include <utility>

namespace fedrun {

// Does not wait for the default stream, nor that for it.
class CudaStream {
 public:
  CudaStream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() { static_cast<void>(cudaStreamDestroy(stream_)); }  // what is on it is still carried out

  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// A point in the work of a stream. It takes no time stamp, which makes it cheap.
class CudaEvent {
 public:
  CudaEvent() { check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags"); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() { static_cast<void>(cudaEventDestroy(event_)); }  // allowed before it has happened

  void record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void let_wait(cudaStream_t stream) const {
    check_cuda(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }

  cudaEvent_t get() const { return event_; }

  // Never blocks.
  bool has_happened() const {
    const cudaError_t result = cudaEventQuery(event_);
    if (result == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());  // it is an answer, not an error
      return false;
    }
    check_cuda(result, "cudaEventQuery");
    return true;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Memory for what is put on one stream between its construction and its destruction; nobody waits for either.
class CudaScratch {
 public:
  CudaScratch() = default;
  CudaScratch(std::size_t bytes, cudaStream_t stream) : stream_(stream) {
    if (bytes != 0) check_cuda(cudaMallocAsync(&data_, bytes, stream), "cudaMallocAsync");
  }
  CudaScratch(CudaScratch&& other) noexcept : data_(std::exchange(other.data_, nullptr)), stream_(other.stream_) {}
  CudaScratch& operator=(CudaScratch&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~CudaScratch() {
    if (data_ != nullptr) static_cast<void>(cudaFreeAsync(data_, stream_));
  }

  void* get() const { return data_; }

 private:
  void* data_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace fedrun
