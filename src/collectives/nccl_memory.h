// Memory of a GPU that NCCL may use where it lies.
#pragma once

#include <fedrun/collectives/nccl_communicator.h>

#include <cstddef>
#include <memory>

namespace fedrun {

class NcclMemory {
 public:
  // On the thread's current GPU, which is `gpu`.
  NcclMemory(std::size_t bytes, int gpu, const std::shared_ptr<NcclCommunicator>& communicator);
  NcclMemory(const NcclMemory&) = delete;
  NcclMemory& operator=(const NcclMemory&) = delete;
  // Waits for what uses it, on any thread.
  ~NcclMemory();

  // Nothing may be being launched on the communicator. NCCL wants that either all ranks of an operation bring memory
  // which they have registered, or none of them does.
  void enroll();

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
  int gpu_;
  std::weak_ptr<NcclCommunicator> communicator_;  // the memory may outlive it, which then has deregistered it
  void* registration_ = nullptr;
};

}  // namespace fedrun
