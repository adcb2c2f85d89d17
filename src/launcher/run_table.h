// What --verbose and --dry-run show before the start: where each rank runs, and on what.
#pragma once

#include <fedrun/launcher/options.h>
#include <fedrun/launcher/placement.h>

#include <optional>
#include <string>
#include <vector>

namespace fedrun::launcher {

struct RunPlan {
  std::vector<RankPlace> ranks;
  std::vector<int> gpus = {};       // by rank; empty: the ranks use the CPU
  std::optional<int> threads = {};  // of each rank; unset: its share of the host's cores
  Binding binding = Binding::none;
};

// A line for each rank, aligned, with headings; then threads and binding.
std::string run_table(const RunPlan& plan);

}  // namespace fedrun::launcher
