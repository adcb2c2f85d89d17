// Which GPU each rank gets: from the YAML file behind --gpu-mapping, or one after the other.
#pragma once

#include <fedrun/core/run_env.h>
#include <fedrun/launcher/placement.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

// One mapping of the file: how many ranks each GPU of each host takes. A host's ranks fill its GPUs in order.
struct GpuMapping {
  struct Row {
    std::string host;
    std::vector<int> ranks_of_gpu;  // 0: the GPU is left out
    int line;
  };

  std::string file;  // for messages
  std::string key;
  std::vector<Row> rows;
};

constexpr std::string_view default_mapping_key = "mapping_default";

// Both throw UsageError with file, line and key.
GpuMapping parse_gpu_mapping(std::string_view text, std::string_view file, std::string_view key = default_mapping_key);
GpuMapping read_gpu_mapping(const std::filesystem::path& file, std::string_view key = default_mapping_key);

// The index of the GPU by rank. Every host of the run must be in the mapping with as many places as it has ranks, and
// no other host may be; else UsageError names host and counts. node1 and node1.example.org are the same host.
std::vector<int> gpus_of_ranks(const GpuMapping& mapping, const std::vector<RankPlace>& places);

// Without a mapping: the local rank modulo the GPUs of a host. Empty when there are none.
std::vector<int> gpus_of_ranks(int gpus_per_host, const std::vector<RankPlace>& places);

// The value of FEDRUN_GPU_OF_RANK.
std::string gpu_list(const std::vector<int>& gpus);

// How many GPUs this machine has by its device files, or how many of them CUDA_VISIBLE_DEVICES lets programs see.
int count_gpus(const RunEnv::Lookup& lookup, const std::filesystem::path& devices = "/dev");

}  // namespace fedrun::launcher
