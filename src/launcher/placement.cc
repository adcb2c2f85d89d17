#include <fedrun/core/error.h>
#include <fedrun/launcher/placement.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fedrun::launcher {

bool Placement::on_this_machine() const { return std::all_of(hosts.begin(), hosts.end(), is_this_machine); }

Placement place(std::optional<int> ranks, std::vector<Host> hosts) {
  if (hosts.empty()) return {.ranks = ranks.value_or(1), .hosts = {}};
  int slots = 0;
  for (const Host& host : hosts) slots += host.slots;
  if (ranks > slots) {
    throw UsageError(
        fmt::format("-np {} needs {} slots, but the hosts have {}: raise the slots (such as {}:{}), add hosts, "
                    "or pass -np {}",
                    *ranks, *ranks, slots, hosts[0].name, hosts[0].slots + *ranks - slots, slots));
  }
  return {.ranks = ranks.value_or(slots), .hosts = std::move(hosts)};
}

}  // namespace fedrun::launcher
