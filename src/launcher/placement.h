// How many ranks run, on which hosts, and which rank on which of them.
#pragma once

#include <fedrun/launcher/hosts.h>

#include <optional>
#include <string>
#include <vector>

namespace fedrun::launcher {

struct Placement {
  int ranks = 1;
  std::vector<Host> hosts;  // ranks fill the first host's slots, then the next one's; empty: this machine

  bool on_this_machine() const;
  bool on_one_host() const { return hosts.size() <= 1; }
};

// `ranks` unset: one for each slot; without hosts one for each of the `gpus` of this machine, or a single one. This
// machine takes any number of ranks; hosts that the user has listed take no more than their slots, else it throws
// UsageError.
Placement place(std::optional<int> ranks, std::vector<Host> hosts, int gpus = 0);

struct RankPlace {
  int rank;
  std::string host;  // localhost for this machine
  int local_rank;    // counts the ranks of the host

  bool operator==(const RankPlace&) const = default;
};

// Where mpirun puts each rank, by rank.
std::vector<RankPlace> ranks_in_order(const Placement& placement);

}  // namespace fedrun::launcher
