// How many ranks run, and on which hosts.
#pragma once

#include <fedrun/launcher/hosts.h>

#include <optional>
#include <vector>

namespace fedrun::launcher {

struct Placement {
  int ranks = 1;
  std::vector<Host> hosts;  // ranks fill the first host's slots, then the next one's; empty: this machine

  bool on_this_machine() const;
  bool on_one_host() const { return hosts.size() <= 1; }
};

// `ranks` unset: one for each slot, or a single one without hosts. This machine takes any number of ranks; hosts that
// the user has listed take no more than their slots, else it throws UsageError.
Placement place(std::optional<int> ranks, std::vector<Host> hosts);

}  // namespace fedrun::launcher
