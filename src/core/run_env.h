// Every FEDRUN_* variable, read in one place and documented by the same table; the launcher and the ranks share it.
#pragma once

#include <fedrun/core/log.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun {

enum class BackendChoice { automatic, self, shm, mpi };
enum class DeviceChoice { automatic, cpu, cuda };
enum class AcrossHosts { nccl, mpi };

// What the environment says about this run. A field that is not set keeps the default given here.
struct RunEnv {
  LogLevel log_level = LogLevel::warn;
  BackendChoice backend = BackendChoice::automatic;
  DeviceChoice device = DeviceChoice::automatic;
  bool peer_memory = true;                 // may ranks of a host reach each other's ordinary memory through the kernel?
  std::chrono::seconds stall_warning{30};  // about an operation that does not finish; 0: none
  std::chrono::seconds stall_limit{600};   // after which waiting for it is given up; 0: never
  std::string timeline;                    // a file for the Chrome trace of this run; empty: none
  std::optional<int> threads;              // per rank; unset: cores of the host divided by its ranks
  std::vector<int> gpu_of_rank;            // the GPU of each rank on its host; empty: by local rank
  AcrossHosts gpu_across_hosts = AcrossHosts::nccl;  // what carries elements on GPUs between hosts
  std::size_t gpu_staged_below = 64 << 10;  // bytes of an allreduce that go through host memory, with mpi across hosts
  int progress_descriptor = -1;             // where to tell the launcher how far this rank has come; -1: nowhere
  int terminal_columns = 0;                 // 0: the output is not a terminal, so print plain lines
  std::string test_data;                    // empty: the tests look in ../shared/data

  // Looks a variable up; nullptr when it is not set. Tests pass their own.
  using Lookup = std::function<const char*(const char* name)>;

  // Throws UsageError that names the variable, its value and the values that it takes.
  static RunEnv from(const Lookup& lookup);
  static RunEnv from_environment();
};

// What a rank writes to the progress descriptor, which the process around it opens and names in this variable.
constexpr const char* progress_descriptor_variable = "FEDRUN_PROGRESS_DESCRIPTOR";
constexpr char progress_begun = 'b';   // it has begun to connect to the others
constexpr char progress_joined = 'j';  // it is connected to all of them

// One row of the documentation of RunEnv.
struct RunVariable {
  const char* name;
  const char* values;
  const char* fallback;
  const char* meaning;
  void (*parse)(RunEnv& env, std::string_view text);
};

std::span<const RunVariable> run_variables();

}  // namespace fedrun
