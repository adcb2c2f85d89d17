#include <fedrun/collectives/equal_parts.h>
#include <fedrun/collectives/hash.h>
#include <fedrun/collectives/topology.h>
#include <fedrun/core/error.h>
#include <fedrun/core/host_name.h>
#include <fedrun/fl/rank_groups.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>

namespace fedrun::fl {
namespace {

// Hosts numbered in the order in which their first ranks come.
std::vector<int> host_of_each_rank(Communicator& world) {
  const auto mine = static_cast<std::int64_t>(hash_of(host_name()));
  std::map<std::int64_t, int> numbers;
  std::vector<int> hosts;
  for (const auto& hash : world.allgather(std::span(&mine, 1))) {
    hosts.push_back(numbers.emplace(hash.front(), static_cast<int>(numbers.size())).first->second);
  }
  return hosts;
}

std::vector<std::vector<std::size_t>> ranks_of_each_host(const std::vector<int>& hosts) {
  std::vector<std::vector<std::size_t>> ranks(static_cast<std::size_t>(*std::max_element(hosts.begin(), hosts.end())) +
                                              1);
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) ranks[static_cast<std::size_t>(hosts[rank])].push_back(rank);
  return ranks;
}

// At least as many groups as hosts: each host is divided into some, the next one always where they are largest.
std::vector<int> divide_hosts(const std::vector<int>& hosts, std::size_t count) {
  const auto ranks = ranks_of_each_host(hosts);
  std::vector<std::size_t> groups_of(ranks.size(), 1);
  for (std::size_t made = ranks.size(); made < count; ++made) {
    std::size_t largest = 0;
    for (std::size_t host = 1; host < ranks.size(); ++host) {
      if (ranks[host].size() * groups_of[largest] > ranks[largest].size() * groups_of[host]) largest = host;
    }
    ++groups_of[largest];
  }
  std::vector<int> groups(hosts.size());
  int group = 0;
  for (std::size_t host = 0; host < ranks.size(); ++host) {
    auto next = ranks[host].begin();
    for (const std::size_t size : equal_parts(ranks[host].size(), groups_of[host])) {
      for (std::size_t i = 0; i < size; ++i) groups[*next++] = group;
      ++group;
    }
  }
  return groups;
}

// Fewer groups than hosts: neighbouring hosts share one, so that about as many ranks are in each.
std::vector<int> join_hosts(const std::vector<int>& hosts, std::size_t count) {
  const auto ranks = ranks_of_each_host(hosts);
  std::vector<int> groups(hosts.size());
  std::size_t group = 0;
  std::size_t placed = 0;
  for (std::size_t host = 0; host < ranks.size(); ++host) {
    const std::size_t hosts_left = ranks.size() - host;
    const bool is_full = placed * count >= (group + 1) * hosts.size();
    const bool others_need_it = host > 0 && hosts_left < count - group;
    if (is_full || others_need_it) ++group;
    for (const std::size_t rank : ranks[host]) groups[rank] = static_cast<int>(group);
    placed += ranks[host].size();
  }
  return groups;
}

std::vector<int> groups_by_count(const std::vector<int>& hosts, int count) {
  if (count < 1 || static_cast<std::size_t>(count) > hosts.size()) {
    throw UsageError(
        fmt::format("{} ranks cannot form {} groups: choose a number from 1 to {}", hosts.size(), count, hosts.size()));
  }
  const int host_count = *std::max_element(hosts.begin(), hosts.end()) + 1;
  return count < host_count ? join_hosts(hosts, static_cast<std::size_t>(count))
                            : divide_hosts(hosts, static_cast<std::size_t>(count));
}

std::vector<int> groups_by_lists(std::size_t ranks, const std::vector<std::vector<int>>& lists) {
  std::vector<int> groups(ranks, -1);
  for (std::size_t group = 0; group < lists.size(); ++group) {
    if (lists[group].empty()) throw UsageError(fmt::format("rank group {} has no ranks: leave it out", group));
    for (const int rank : lists[group]) {
      if (rank < 0 || static_cast<std::size_t>(rank) >= ranks) {
        throw UsageError(fmt::format("rank group {} lists rank {}, but there are {} ranks", group, rank, ranks));
      }
      int& place = groups[static_cast<std::size_t>(rank)];
      if (place >= 0) throw UsageError(fmt::format("rank {} is in the rank groups {} and {}", rank, place, group));
      place = static_cast<int>(group);
    }
  }
  const auto left_out = std::find(groups.begin(), groups.end(), -1);
  if (left_out != groups.end()) {
    throw UsageError(fmt::format("rank {} is in no rank group: every rank trains", left_out - groups.begin()));
  }
  return groups;
}

}  // namespace

std::vector<int> group_of_each_rank(const std::vector<int>& hosts, const RankGroupsOptions& options) {
  const int ways = (options.count != 0 ? 1 : 0) + (options.by_host ? 1 : 0) + (options.lists.empty() ? 0 : 1);
  if (ways > 1) throw UsageError("rank groups are given in more than one way: choose a number, hosts or lists");
  if (options.count != 0) return groups_by_count(hosts, options.count);
  if (options.by_host) return hosts;
  if (!options.lists.empty()) return groups_by_lists(hosts.size(), options.lists);
  std::vector<int> alone(hosts.size());
  std::iota(alone.begin(), alone.end(), 0);
  return alone;
}

RankGroups::RankGroups(Communicator& world, const RankGroupsOptions& options)
    : RankGroups(group_of_each_rank(host_of_each_rank(world), options), world) {}

RankGroups::RankGroups(const std::vector<int>& groups, Communicator& world)
    : world_(world),
      group_(groups[static_cast<std::size_t>(world.rank())]),
      count_(*std::max_element(groups.begin(), groups.end()) + 1),
      inner_(world.split({.color = group_})) {
  is_even_ = true;
  const auto size = std::count(groups.begin(), groups.end(), 0);
  for (int group = 1; group < count_; ++group) is_even_ &= std::count(groups.begin(), groups.end(), group) == size;

  for (int place = 0; place < (is_even_ ? size : 1); ++place) {
    std::vector<int> counterparts;
    std::vector<int> seen(static_cast<std::size_t>(count_));
    for (std::size_t rank = 0; rank < groups.size(); ++rank) {
      if (seen[static_cast<std::size_t>(groups[rank])]++ == place) counterparts.push_back(static_cast<int>(rank));
    }
    if (std::optional<Communicator> group = world.group(counterparts)) outer_ = std::move(group);
  }
}

void RankGroups::sum_across(Buffer buffer) {
  if (count_ == 1) return;
  if (is_even_) return sum_shard(buffer);
  if (outer_) outer_->allreduce(buffer, {.op = ReduceOp::sum});
  inner_.broadcast(buffer);
}

void RankGroups::sum_shard(Buffer buffer) {
  if (inner_.size() == 1) return outer_->allreduce(buffer, {.op = ReduceOp::sum});
  const std::vector<std::size_t> counts = inner_.equal_parts(buffer.count);
  const std::size_t first = std::accumulate(counts.begin(), counts.begin() + inner_.rank(), std::size_t{0});
  Buffer part = buffer;
  part.data = static_cast<std::byte*>(buffer.data) + first * size_of(buffer.type);
  part.count = counts[static_cast<std::size_t>(inner_.rank())];
  // A gather's input must not overlap its output. The first part is the longest, so all ranks allocate at once.
  const std::size_t longest_bytes = counts.front() * size_of(buffer.type);
  std::optional<Memory>& memory = shards_[buffer.device == Device::cpu ? 0 : 1];
  if (!memory || memory->bytes() < longest_bytes) memory.emplace(inner_.allocate(longest_bytes, buffer.device));
  Buffer shard = part;
  shard.data = memory->data();
  outer_->allreduce(part, shard, {.op = ReduceOp::sum});
  inner_.allgather(shard, buffer, counts);
}

}  // namespace fedrun::fl
