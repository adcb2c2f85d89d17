// Groups of ranks that train one client together; what the groups learn is added up across them.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/collectives/types.h>

#include <array>
#include <optional>
#include <vector>

namespace fedrun::fl {

// At most one of these is given; otherwise each rank is a group of its own.
struct RankGroupsOptions {
  int count = 0;                          // so many groups, none of which spans two hosts if that can be
  bool by_host = false;                   // the ranks of a host form a group
  std::vector<std::vector<int>> lists{};  // these groups; each rank is in exactly one
};

// Which group each rank is in, by rank. Hosts are given as numbers that are equal for ranks of one host. Throws
// UsageError for options that contradict each other or the number of ranks.
std::vector<int> group_of_each_rank(const std::vector<int>& host_of_each_rank, const RankGroupsOptions& options);

// Used by one thread; the world must outlive it.
class RankGroups {
 public:
  // Collective over the world.
  explicit RankGroups(Communicator& world, const RankGroupsOptions& options = {});

  int group() const { return group_; }  // of this rank
  int count() const { return count_; }

  Communicator& world() { return world_; }
  Communicator& inner() { return inner_; }  // the ranks of this group

  // Collective over the world: adds up what the groups bring. The ranks of a group bring the same values, and each
  // sends only its part of them to the other groups where the groups have the same size; otherwise their first ranks
  // send.
  void sum_across(Buffer buffer);

 private:
  RankGroups(const std::vector<int>& groups, Communicator& world);
  void sum_shard(Buffer buffer);

  Communicator& world_;
  int group_;
  int count_;
  bool is_even_;  // all groups have the same size
  Communicator inner_;
  std::optional<Communicator> outer_;            // this rank's counterparts in the other groups, where it has some
  std::array<std::optional<Memory>, 2> shards_;  // for what sum_across() sends, of the CPU and of the GPU
};

}  // namespace fedrun::fl
