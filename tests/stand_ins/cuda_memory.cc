// The CUDA runtime's functions about memory.
#include <cstring>
#include <vector>

#include "stand_ins/cuda_errors.h"
#include "stand_ins/stand_in_control.h"
#include "stand_ins/stand_in_machine.h"

using namespace stand_in;

extern "C" {

cudaError_t cudaMalloc(void** data, size_t bytes) {
  *data = allocate_device_memory(bytes);
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  return data == nullptr || free_device_memory(data) ? cudaSuccess : answer(cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  if (control().shall_fail("cudaMemPoolCreate")) return answer(cudaErrorNotSupported);
  if (properties->location.type != cudaMemLocationTypeDevice || properties->location.id != current_gpu()) {
    control().report("cudaMemPoolCreate for another GPU than the thread's");
  }
  *pool = reinterpret_cast<cudaMemPool_t>(new int(properties->location.id));
  control().add("pool", 1);
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return control().shall_fail("cudaMemPoolSetAttribute") ? answer(cudaErrorInvalidValue) : cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  delete reinterpret_cast<int*>(pool);
  control().add("pool", -1);
  return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void** data, size_t bytes, cudaMemPool_t, cudaStream_t) {
  if (control().shall_fail("cudaMallocFromPoolAsync")) return answer(cudaErrorMemoryAllocation);
  *data = allocate_device_memory(bytes);
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  control().add("allocation", -1);
  std::size_t bytes = 0;
  {
    const std::lock_guard lock(machine().mutex);
    bytes = machine().allocations.at(static_cast<const std::byte*>(data)).bytes;
  }
  put_on_stream(stream, "cudaFreeAsync", {{data, bytes, true}}, [data] { unmap_device_memory(data); });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream) {
  if (control().shall_fail("cudaMemsetAsync")) return answer(cudaErrorUnknown);
  put_on_stream(stream, "cudaMemsetAsync", {{data, bytes, true}},
                [=] { std::memset(seen_by_device(data), value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* data, size_t, unsigned) {
  if (control().shall_fail("cudaHostRegister")) return answer(cudaErrorMemoryAllocation);
  if (data == nullptr) control().report("cudaHostRegister of nothing");
  control().add("pinned block", 1);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void*) {
  control().add("pinned block", -1);
  return cudaSuccess;
}

// Host memory is read and written when the copy's turn comes, as for memory that is pinned.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (control().shall_fail("cudaMemcpyAsync")) return answer(cudaErrorUnknown);
  if (kind == cudaMemcpyDefault) {
    kind = seen_by_device(to) == nullptr ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
  }
  std::vector<Access> accesses;
  if (kind != cudaMemcpyHostToDevice) accesses.push_back({from, bytes, false});
  if (kind != cudaMemcpyDeviceToHost) accesses.push_back({to, bytes, true});
  put_on_stream(stream, "cudaMemcpyAsync", accesses, [=] {
    if (bytes == 0) return;
    std::memcpy(kind == cudaMemcpyDeviceToHost ? to : seen_by_device(to),
                kind == cudaMemcpyHostToDevice ? from : seen_by_device(from), bytes);
  });
  return cudaSuccess;
}

}  // extern "C"
