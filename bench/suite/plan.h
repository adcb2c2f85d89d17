// Decides what is measured, by which commands, and what is left out and why.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "options.h"
#include "step.h"

namespace fedrun::bench::suite {

// Where the ranks are.
struct Site {
  int ranks = 1;
  std::vector<std::string> host_of_rank{};  // by rank
  int cores = 1;                            // of the host that has the fewest
  bool computes_bf16 = false;               // in the instructions of every host's CPU
  bool on_gpus = false;
  std::string why_no_gpus{};  // where it is not

  // How many hosts the first `count` ranks are on.
  int hosts(int count) const;
  int most_ranks_of_a_host() const;
};

// The numbers of ranks at which scaling is measured: powers of two, whole hosts, and all.
std::vector<int> rank_counts(const Site& site, bool quick);
// How many groups the ranks are divided into: from one for all to one for each, in equal parts.
std::vector<int> group_counts(int ranks);

struct Programs {
  std::filesystem::path directory{};                      // of fedrun and the benchmarks
  std::function<bool(const std::string& program)> has{};  // is this benchmark in it?
};

struct Plan {
  std::vector<Step> steps{};
  std::vector<Skipped> skipped{};
};

Plan make_plan(const Options& options, const Site& site, const Programs& programs);

}  // namespace fedrun::bench::suite
