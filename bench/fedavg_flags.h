// What the user wants to see of federated rounds.
#pragma once

#include <fedrun/core/run_env.h>

#include <optional>
#include <string>
#include <vector>

#include "fedavg_workload.h"

namespace fedrun::bench {

// fedrun: rounds as programs run them. tight: rank 0 alone, on one flat vector of weights with gradients by hand, and
// nothing else. independent: each rank trains on the batches that it has in fedrun, and nothing is averaged.
enum class FedavgSystem { fedrun, tight, independent };

struct FedavgFlags {
  std::vector<FedavgWorkload> workloads{};
  std::vector<FedavgSystem> systems{};
  DeviceChoice device = DeviceChoice::automatic;
  std::vector<int> groups{};  // how many groups of ranks; none: each rank is one
  std::string data_dir{};
  int turns = 0;
  std::optional<int> rounds{};  // per turn; none: what is usual for the workload
  std::string partition_path{};
  std::optional<std::string> json_path{};
};

// Nothing after --help. Throws UsageError for what cannot be measured.
std::optional<FedavgFlags> read_fedavg_flags(int argc, char** argv, int rank);

}  // namespace fedrun::bench
