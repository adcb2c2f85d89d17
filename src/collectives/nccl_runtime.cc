#include <fedrun/collectives/device_kernels.h>
#include <fedrun/collectives/nccl_call.h>
#include <fedrun/collectives/nccl_group.h>
#include <fedrun/collectives/nccl_runtime.h>

#include <array>

namespace fedrun {
namespace {

// A build with NCCL 2.19 or newer calls what 2.18 lacks.
constexpr int oldest_minor = NCCL_VERSION_CODE < NCCL_VERSION(2, 19, 0) ? 18 : 19;

}  // namespace

GpuFinding find_gpu(std::optional<int> mapped, const Topology& topology) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // it is told here
    return {.why_not = fmt::format("CUDA says on host {}: {}; nvidia-smi shows what its driver sees", topology.host,
                                   cudaGetErrorString(result))};
  }
  if (count == 0) return {.why_not = fmt::format("host {} has no GPU", topology.host)};
  int version = 0;
  check_nccl(ncclGetVersion(&version), "ncclGetVersion");
  if (version < NCCL_VERSION(2, oldest_minor, 0)) {
    return {.why_not = fmt::format("NCCL {}.{}.{} on host {} is too old: this build needs 2.{} or newer",
                                   version / 10000, version / 100 % 100, version % 100, topology.host, oldest_minor)};
  }
  if (mapped && *mapped >= count) {
    throw UsageError(
        fmt::format("rank {} is mapped to GPU {} of host {}, which has {}, numbered from 0: correct the GPU "
                    "mapping",
                    topology.rank, *mapped, topology.host, count));
  }
  const int gpu = mapped.value_or(topology.local_rank % count);
  std::array<char, 32> bus{};
  check_cuda(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), gpu), "cudaDeviceGetPCIBusId");
  return {.gpu = gpu, .bus = bus.data()};
}

void use_gpu(int gpu) { check_cuda(cudaSetDevice(gpu), "cudaSetDevice"); }

MakeDeviceGroup nccl_groups(int gpu) {
  return [gpu]() -> std::shared_ptr<DeviceGroup> {
    use_gpu(gpu);
    load_kernels_on_device();
    return std::make_shared<NcclGroup>(gpu);  // shared: with the operations under way and with memory
  };
}

}  // namespace fedrun
