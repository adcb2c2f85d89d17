// Which environment variables reach the ranks: FEDRUN_* settings, what -x names, the interfaces for NCCL, and the
// search paths on other hosts.
#pragma once

#include <fedrun/core/run_env.h>
#include <fedrun/launcher/options.h>
#include <fedrun/launcher/placement.h>

#include <optional>
#include <string>
#include <vector>

namespace fedrun::launcher {

struct PassedVariable {
  std::string name;
  std::optional<std::string> value;  // unset: as it is in fedrun's own environment

  bool operator==(const PassedVariable&) const = default;
};

// Flags win over the environment. Throws UsageError for a variable that is not set or not valid, so that the user hears
// of it once, here, and not from every rank. `terminal_columns`: 0 when the output does not go to a terminal. `gpus`:
// the GPU of each rank; empty when no mapping says so.
std::vector<PassedVariable> rank_environment(const Options& options, const Placement& placement, int terminal_columns,
                                             const RunEnv::Lookup& lookup, const std::vector<int>& gpus = {});

}  // namespace fedrun::launcher
