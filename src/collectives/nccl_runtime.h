// Which GPU a rank uses, and how the GPUs of a group come together; what a build without CUDA has is nccl_absent.cc.
#pragma once

#include <fedrun/collectives/device_group.h>
#include <fedrun/collectives/topology.h>

#include <optional>
#include <string>

namespace fedrun {

struct GpuFinding {
  std::optional<int> gpu{};  // its index among those that this process sees
  std::string bus{};         // where it is plugged in, whatever its index
  std::string why_not{};     // if there is none
  bool is_expected = true;   // by whoever built this
};

// The GPU that the mapping says, or that of the local rank; in turn, where there are more ranks than GPUs. Makes no
// context on any. Throws UsageError for a mapping to a GPU that this host does not have.
GpuFinding find_gpu(std::optional<int> mapped, const Topology& topology);

// Before anything else of this process uses a GPU, so that it uses no other.
void use_gpu(int gpu);

// Makes groups of ranks that have called use_gpu().
MakeDeviceGroup nccl_groups(int gpu);

}  // namespace fedrun
