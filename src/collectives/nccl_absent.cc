// Stands in for CUDA and NCCL in a build without them.
#include <fedrun/collectives/device_kernels.h>
#include <fedrun/collectives/nccl_runtime.h>
#include <fedrun/core/error.h>

namespace fedrun {

GpuFinding find_gpu(std::optional<int>, const Topology&) {
  return {.why_not = "CUDA is not in this build: configure with --preset cuda", .is_expected = false};
}
void use_gpu(int) {}
MakeDeviceGroup nccl_groups(int) { return {}; }

void copy_on_device(std::span<const CopyPiece>, const DeviceCopy&, void*) {
  throw BackendError("elements on a GPU: CUDA is not in this build: configure with --preset cuda");
}

void round_with_feedback_on_device(const Buffer&, const Buffer&, const Feedback&) {
  throw BackendError("elements on a GPU, and CUDA is not in this build: configure with --preset cuda");
}

}  // namespace fedrun
