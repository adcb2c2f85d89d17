// Makes groups of all ranks that are apart from the process's own, so that tests may break them.
#pragma once

#include <fedrun/collectives/engine_backend.h>
#include <fedrun/collectives/nccl_runtime.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "support/rank_test.h"

namespace fedrun::test {

// By rank, the number of the host that it shall believe to be on: as TEST_HOSTS says, in digits such as 0011, else all
// on one. The mpi backend treats every rank as a host of its own.
inline std::vector<int> hosts_of_ranks() {
  std::vector<int> hosts(static_cast<std::size_t>(process().size()), 0);
  const char* const text = std::getenv("TEST_HOSTS");
  for (std::size_t rank = 0; text != nullptr && rank < hosts.size(); ++rank) hosts[rank] = text[rank] - '0';
  if (process().env().backend == BackendChoice::mpi) std::iota(hosts.begin(), hosts.end(), 0);
  return hosts;
}

// Which ranks NCCL connects in a group of all. Collective over the process's own group.
inline NcclReach reach_of_nccl() {
  const DeviceOptions options = process().device_options();
  Group group;
  group.world_ranks.resize(static_cast<std::size_t>(process().size()));
  group.assign_hosts(hosts_of_ranks());
  const auto ids = process().world().allgather(std::array{static_cast<std::int64_t>(options.gpu_id)});
  for (const auto& id : ids) group.gpu_of.push_back(static_cast<std::uint64_t>(id.front()));
  return group.nccl_reach(options.mpi_across_hosts);
}

// Collective over the process's own group.
inline std::unique_ptr<Backend> make_device_world(std::chrono::seconds limit = std::chrono::seconds(60),
                                                  const DeviceOptions& devices = process().device_options()) {
  Communicator& base = process().world();
  const Gather gather = [&base](const void* mine, std::size_t bytes, void* all) {
    const auto count = static_cast<std::size_t>(base.size());
    base.allgather({mine, bytes, DataType::u8}, {.data = all, .count = count * bytes, .type = DataType::u8},
                   std::vector<std::size_t>(count, bytes));
  };
  const std::vector<int> hosts = hosts_of_ranks();
  const bool is_spread = std::ranges::count(hosts, hosts.front()) != base.size();
  return make_world_backend({base.rank(), hosts}, gather,
                            {.wait = {.each_rank_has_a_core = false, .abort_after = limit},
                             .make_links = is_spread ? MakeLinks(MpiRuntime::make_links) : MakeLinks(),
                             .devices = devices});
}

}  // namespace fedrun::test
