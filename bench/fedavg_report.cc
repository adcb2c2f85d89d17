#include "fedavg_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace fedrun::bench {
namespace {

std::string_view name_of(FedavgSystem system) {
  switch (system) {
    case FedavgSystem::fedrun:
      return "fedrun";
    case FedavgSystem::tight:
      return "tight";
    case FedavgSystem::independent:
      return "independent";
  }
  return "";
}

}  // namespace

FedavgReport::FedavgReport(const FedavgFlags& flags) : json_(flags.json_path) {
  fmt::print("# {}; time of a round in ms, until the last rank has ended; memory: peak of rank 0 so far\n",
             flags.data_dir.empty() ? "drawn digits" : "MNIST");
  fmt::print("# {:<14} {:<12} {:>5} {:>6} {:>10} {:>10} {:>9} {:>10}\n", "workload", "system", "ranks", "groups",
             "median", "fastest", "× first", "memory MB");
}

void FedavgReport::add(const FedavgResult& result) {
  if (result.workload != first_.workload) first_ = result;
  fmt::print("  {:<14} {:<12} {:>5} {:>6} {:>10.3f} {:>10.3f} {:>9.2f} {:>10.0f}\n", result.workload,
             name_of(result.system), result.ranks, result.groups, result.round_ms, result.fastest_ms,
             result.round_ms / first_.round_ms, result.peak_memory_mb);
  std::fflush(stdout);
  json_.add(nlohmann::json{{"system", name_of(result.system)},
                           {"workload", result.workload},
                           {"ranks", result.ranks},
                           {"groups", result.groups},
                           {"device", result.device},
                           {"round_ms", result.round_ms},
                           {"fastest_ms", result.fastest_ms},
                           {"peak_memory_mb", result.peak_memory_mb}});
}

}  // namespace fedrun::bench
