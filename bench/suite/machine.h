// What the numbers were measured on: without it they mean nothing.
#pragma once

#include <fedrun/launcher/check_build.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::bench::suite {

struct Gpu {
  std::string name{};
  std::string memory{};
};

struct HostDescription {
  std::string host{};
  std::string system{};  // such as Debian GNU/Linux 12
  std::string kernel{};
  std::string cpu{};
  int cores = 0;  // that ranks may use
  double memory_gib = 0;
  std::vector<std::string> simd{};
  std::string open_mpi{};  // of the mpirun on PATH; empty: there is none
  std::vector<Gpu> gpus{};
  std::string gpu_driver{};  // empty: none answers
  double load = 0;           // before anything was measured: what else the machine was doing
};

// Of the machine on which this runs.
HostDescription describe_this_host();

nlohmann::ordered_json to_json(const HostDescription& host);
HostDescription host_from_json(const nlohmann::ordered_json& json);

// The first model name in the text of /proc/cpuinfo; empty: there is none, as on many Arm machines.
std::string cpu_model(std::string_view cpuinfo);
// What `nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader` has printed.
void read_gpus(std::string_view text, HostDescription& into);

// Versions of fedrun and of what it was built with.
nlohmann::ordered_json describe_software(const launcher::BuildFacts& build);

}  // namespace fedrun::bench::suite
