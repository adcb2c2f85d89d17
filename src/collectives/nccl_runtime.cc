#include <fedrun/collectives/nccl_call.h>
#include <fedrun/collectives/nccl_group.h>
#include <fedrun/collectives/nccl_runtime.h>

#include <algorithm>
#include <cstring>

namespace fedrun {
namespace {

constexpr int oldest_nccl = NCCL_VERSION(2, 19, 0);

}  // namespace

GpuFinding find_gpu(std::optional<int> mapped, const Topology& topology) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // it is told here
    return {std::nullopt, fmt::format("CUDA says on host {}: {}; nvidia-smi shows what its driver sees", topology.host,
                                      cudaGetErrorString(result))};
  }
  if (count == 0) return {std::nullopt, fmt::format("host {} has no GPU", topology.host)};
  int version = 0;
  check_nccl(ncclGetVersion(&version), "ncclGetVersion");
  if (version < oldest_nccl) {
    return {std::nullopt,
            fmt::format("NCCL {} on host {} is too old: 2.19 or newer is needed", version, topology.host)};
  }
  if (mapped && *mapped >= count) {
    throw UsageError(
        fmt::format("rank {} is mapped to GPU {} of host {}, which has {}, numbered from 0: correct the GPU "
                    "mapping",
                    topology.rank, *mapped, topology.host, count));
  }
  return {mapped.value_or(topology.local_rank % count), {}};
}

void use_gpu(int gpu) { check_cuda(cudaSetDevice(gpu), "cudaSetDevice"); }

MakeDeviceGroup nccl_groups(int gpu) {
  return [gpu](const Gather& gather, const DeviceSeat& seat) -> std::shared_ptr<DeviceGroup> {
    // Even a rank that fails must tell the others, who wait to hear.
    ncclUniqueId mine{};
    std::exception_ptr problem;
    try {
      use_gpu(gpu);
      if (seat.rank == 0) mine = NcclCommunicator::make_id();
    } catch (const Error&) {
      problem = std::current_exception();
    }
    const auto ids = gather_values(gather, seat.ranks, mine);
    if (problem) std::rethrow_exception(problem);
    // shared: with the operations under way and with memory
    return std::make_shared<NcclGroup>(gpu, seat.rank, seat.ranks,
                                       std::make_shared<NcclCommunicator>(ids.front(), seat));
  };
}

}  // namespace fedrun
