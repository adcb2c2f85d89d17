// Who is in a group, and which of them share a host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace fedrun {

// Which ranks of a group NCCL connects.
enum class NcclReach {
  nobody,
  host,   // those of each host
  group,  // all
};

// The leader of a host is its lowest rank in the group: it hears from the other hosts.
struct Group {
  std::uint64_t id = 0;
  std::vector<std::uint64_t> ancestors{};  // the ids of the groups that it was made from
  int rank = 0;                            // of this process in the group
  std::vector<int> world_ranks{};          // by rank
  std::vector<int> host_of{};              // by rank: 0, 1, … in the order of the hosts' leaders
  std::vector<std::vector<int>> hosts{};   // by host: its ranks, in order
  std::vector<std::uint64_t> gpu_of{};     // by rank: equal where ranks share a GPU; 0: shared with nobody

  int size() const { return static_cast<int>(world_ranks.size()); }
  int host_count() const { return static_cast<int>(hosts.size()); }
  int world_rank(int member) const { return world_ranks[static_cast<std::size_t>(member)]; }
  int host(int member) const { return host_of[static_cast<std::size_t>(member)]; }
  int own_host() const { return host(rank); }
  const std::vector<int>& ranks_of_host(int number) const { return hosts[static_cast<std::size_t>(number)]; }
  const std::vector<int>& neighbours() const { return ranks_of_host(own_host()); }  // with this rank
  int leader(int number) const { return ranks_of_host(number).front(); }
  bool is_neighbour(int member) const { return host(member) == own_host(); }
  bool is_leader() const { return leader(own_host()) == rank; }
  // Of this rank among those of its host.
  std::size_t index_on_host() const {
    return static_cast<std::size_t>(std::ranges::find(neighbours(), rank) - neighbours().begin());
  }
  bool descends_from(std::uint64_t other) const {
    return other == id || std::ranges::find(ancestors, other) != ancestors.end();
  }

  // NCCL refuses two ranks on one GPU. With MPI across hosts, it has something to do only where a host has several.
  NcclReach nccl_reach(bool mpi_across_hosts) const {
    std::vector<std::uint64_t> gpus = gpu_of;
    std::erase(gpus, 0);
    std::ranges::sort(gpus);
    if (std::ranges::adjacent_find(gpus) != gpus.end()) return NcclReach::nobody;
    if (!mpi_across_hosts || host_count() <= 1) return NcclReach::group;
    return host_count() == size() ? NcclReach::nobody : NcclReach::host;
  }

  // `host_numbers` by rank: any numbers that are equal where the host is.
  void assign_hosts(const std::vector<int>& host_numbers) {
    std::map<int, int> renumbered;
    for (const int number : host_numbers) {
      const int next = static_cast<int>(renumbered.size());
      const int host_index = renumbered.emplace(number, next).first->second;
      if (host_index == host_count()) hosts.emplace_back();
      hosts[static_cast<std::size_t>(host_index)].push_back(static_cast<int>(host_of.size()));
      host_of.push_back(host_index);
    }
  }
};

}  // namespace fedrun
