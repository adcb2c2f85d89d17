#include <fedrun/collectives/topology.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace fedrun {

std::string affinity_mask() {
  std::string mask(CPU_SETSIZE, '0');
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_SET(0, &cores);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores)) mask[static_cast<std::size_t>(core)] = '1';
  }
  return mask;
}

double fair_share_of_cores(const std::string& mine, const std::string& masks_of_all_local_ranks) {
  double share = 0;
  for (std::size_t core = 0; core < mine.size(); ++core) {
    if (mine[core] != '1') continue;
    int sharers = 0;
    for (std::size_t at = core; at < masks_of_all_local_ranks.size(); at += mine.size()) {
      sharers += masks_of_all_local_ranks[at] == '1' ? 1 : 0;
    }
    share += 1.0 / std::max(sharers, 1);
  }
  return share;
}

void assign_cores(Topology& topology, double share) {
  constexpr double rounding = 1e-6;  // three thirds of a core are one core
  topology.has_own_core = share + rounding >= 1;
  topology.cores = std::max(1, static_cast<int>(share + rounding));
}

}  // namespace fedrun
