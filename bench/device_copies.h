// Elements in the memory of this rank's GPU, for a benchmark that fills and checks them; device_copies_absent.cc is
// what a build without CUDA has.
#pragma once

#include <fedrun/collectives/memory.h>

#include <cstddef>
#include <memory>

namespace fedrun::bench {

// Everything happens on one stream, and is over when the call returns. Used by one thread.
class DeviceCopies {
 public:
  virtual ~DeviceCopies() = default;

  virtual void* stream() const = 0;  // a cudaStream_t
  virtual void write(void* device, const void* host, std::size_t bytes) = 0;
  virtual void read(void* host, const void* device, std::size_t bytes) = 0;
  virtual void fill(void* device, int byte, std::size_t bytes) = 0;
  // Memory that NCCL knows nothing of. This object must outlive it.
  virtual Memory allocate(std::size_t bytes) = 0;
};

// For ranks that have a GPU. Throws BackendError where the build has no CUDA.
std::unique_ptr<DeviceCopies> make_device_copies();

}  // namespace fedrun::bench
