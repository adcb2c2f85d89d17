#include "device_copies.h"

#include <fedrun/collectives/cuda_handles.h>

namespace fedrun::bench {
namespace {

class StreamCopies final : public DeviceCopies {
 public:
  void* stream() const override { return stream_.get(); }

  void write(void* device, const void* host, std::size_t bytes) override {
    check_cuda(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_.get()), "cudaMemcpyAsync");
    wait();
  }
  void read(void* host, const void* device, std::size_t bytes) override {
    check_cuda(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_.get()), "cudaMemcpyAsync");
    wait();
  }
  void fill(void* device, int byte, std::size_t bytes) override {
    check_cuda(cudaMemsetAsync(device, byte, bytes, stream_.get()), "cudaMemsetAsync");
    wait();
  }
  Memory allocate(std::size_t bytes) override {
    void* data = nullptr;
    check_cuda(cudaMalloc(&data, bytes), "cudaMalloc");
    return {data, bytes, [data] { static_cast<void>(cudaFree(data)); }};
  }

 private:
  void wait() { check_cuda(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize"); }

  CudaStream stream_;
};

}  // namespace

std::unique_ptr<DeviceCopies> make_device_copies() { return std::make_unique<StreamCopies>(); }

}  // namespace fedrun::bench
