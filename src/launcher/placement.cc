#include <fedrun/core/error.h>
#include <fedrun/launcher/placement.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fedrun::launcher {
namespace {

constexpr int most_ranks = 65536;

}  // namespace

bool Placement::on_this_machine() const { return std::all_of(hosts.begin(), hosts.end(), is_this_machine); }

Placement place(std::optional<int> ranks, std::vector<Host> hosts, int gpus) {
  if (hosts.empty()) return {.ranks = ranks.value_or(std::max(gpus, 1)), .hosts = {}};
  long long slots = 0;
  for (const Host& host : hosts) slots += host.slots;
  if (!ranks && slots > most_ranks) {
    throw UsageError(
        fmt::format("the hosts have {} slots, and a run has at most {} ranks: pass -np", slots, most_ranks));
  }
  if (ranks > slots) {
    throw UsageError(
        fmt::format("-np {} needs {} slots, but the hosts have {}: raise the slots (such as {}:{}), add hosts, "
                    "or pass -np {}",
                    *ranks, *ranks, slots, hosts[0].name, hosts[0].slots + *ranks - slots, slots));
  }
  return {.ranks = ranks.value_or(static_cast<int>(slots)), .hosts = std::move(hosts)};
}

std::vector<RankPlace> ranks_in_order(const Placement& placement) {
  const std::vector<Host> here = {{"localhost", placement.ranks}};
  std::vector<RankPlace> places;
  for (const Host& host : placement.hosts.empty() ? here : placement.hosts) {
    for (int local = 0; local < host.slots && std::ssize(places) < placement.ranks; ++local) {
      places.push_back({static_cast<int>(places.size()), host.name, local});
    }
  }
  return places;
}

}  // namespace fedrun::launcher
