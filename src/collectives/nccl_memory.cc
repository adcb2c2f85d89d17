#include <fedrun/collectives/cuda_call.h>
#include <fedrun/collectives/nccl_call.h>
#include <fedrun/collectives/nccl_memory.h>

namespace fedrun {

NcclMemory::NcclMemory(std::size_t bytes, int gpu, const std::shared_ptr<NcclCommunicator>& communicator)
    : bytes_(bytes), gpu_(gpu), communicator_(communicator) {
  check_nccl(ncclMemAlloc(&data_, bytes), "ncclMemAlloc", communicator->get());
}

void NcclMemory::enroll() {
  if (const auto communicator = communicator_.lock()) registration_ = communicator->register_memory(data_, bytes_);
}

NcclMemory::~NcclMemory() {
  static_cast<void>(cudaSetDevice(gpu_));  // a thread that has never used the GPU may be the one that lets go
  const auto communicator = communicator_.lock();
  if (communicator && !communicator->settles()) return;  // better lost than gone while NCCL uses it
  // Unlike cudaFree, neither of the calls below waits for the kernels that use the memory.
  static_cast<void>(cudaDeviceSynchronize());
  if (communicator && registration_ != nullptr) communicator->deregister_memory(registration_);
  static_cast<void>(ncclMemFree(data_));
}

}  // namespace fedrun
