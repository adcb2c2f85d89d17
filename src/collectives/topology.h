// Where a rank sits: among all ranks, on its host, and among the hosts.
#pragma once

#include <string>

namespace fedrun {

struct Topology {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks of this host
  int local_size = 1;
  int cross_rank = 0;  // of this host among the hosts
  int cross_size = 1;
  bool homogeneous = true;   // every host has the same number of ranks
  int cores = 1;             // this rank's fair share of the cores that it may run on
  bool has_own_core = true;  // that share is at least one whole core
  std::string host;
};

// How many cores are left of `mine` when each is divided among the ranks that may run on it. Masks are as
// affinity_mask() makes them; two ranks bound apart keep their own cores, two unbound ranks halve them.
double fair_share_of_cores(const std::string& mine, const std::string& masks_of_all_local_ranks);
void assign_cores(Topology& topology, double share);

// This thread's affinity mask, one character '0' or '1' per core, so that ranks can exchange and compare it.
std::string affinity_mask();

}  // namespace fedrun
