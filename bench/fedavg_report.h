// Shows what fedavg_bench has measured: a table for people, JSON lines for programs.
#pragma once

#include <string>

#include "fedavg_flags.h"
#include "json_lines.h"

namespace fedrun::bench {

struct FedavgResult {
  FedavgSystem system = FedavgSystem::fedrun;
  std::string workload{};
  int ranks = 0;   // that train
  int groups = 0;  // of them
  std::string device{};
  double round_ms = 0;  // the median of all rounds
  double fastest_ms = 0;
  double peak_memory_mb = 0;  // of rank 0 so far
};

// Used by rank 0.
class FedavgReport {
 public:
  explicit FedavgReport(const FedavgFlags& flags);

  // A workload's first result is what the following ones are compared with.
  void add(const FedavgResult& result);

 private:
  FedavgResult first_{};
  JsonLines json_;
};

}  // namespace fedrun::bench
