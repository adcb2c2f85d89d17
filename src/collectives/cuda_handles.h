// Owns what CUDA hands out: streams, events, and scratch memory that is freed in the order of a stream.
#pragma once

#include <cuda_runtime_api.h>
#include <fedrun/collectives/cuda_call.h>

#include <cstddef>
#include <cstdint>
#include <limits>
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

// Memory that is handed out in the order of streams. Its own, because in the one that all share, memory that another
// stream still uses may be handed out together with a wait for that: groups would wait for each other in an order that
// nobody has planned.
class CudaPool {
 public:
  explicit CudaPool(int gpu) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, gpu};
    check_cuda(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
    int is_allowed = 0;
    std::uint64_t kept_bytes = std::numeric_limits<std::uint64_t>::max();  // else it is given back at every wait
    try {
      set(cudaMemPoolReuseAllowInternalDependencies, &is_allowed);
      set(cudaMemPoolAttrReleaseThreshold, &kept_bytes);
    } catch (const Error&) {
      static_cast<void>(cudaMemPoolDestroy(pool_));
      throw;
    }
  }
  CudaPool(const CudaPool&) = delete;
  CudaPool& operator=(const CudaPool&) = delete;
  ~CudaPool() { static_cast<void>(cudaMemPoolDestroy(pool_)); }  // what is in use stays until it is freed

  cudaMemPool_t get() const { return pool_; }

 private:
  void set(cudaMemPoolAttr attribute, void* value) {
    check_cuda(cudaMemPoolSetAttribute(pool_, attribute, value), "cudaMemPoolSetAttribute");
  }

  cudaMemPool_t pool_ = nullptr;
};

// Memory for what is put on one stream between its construction and its destruction; nobody waits for either.
class CudaScratch {
 public:
  CudaScratch() = default;
  CudaScratch(std::size_t bytes, const CudaPool& pool, cudaStream_t stream) : stream_(stream) {
    if (bytes != 0) {
      check_cuda(cudaMallocFromPoolAsync(&data_, bytes, pool.get(), stream), "cudaMallocFromPoolAsync");
    }
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
