// Makes groups of all ranks that are apart from the process's own, so that tests may break them.
#pragma once

#include <fedrun/collectives/engine_backend.h>
#include <fedrun/collectives/nccl_runtime.h>

#include <chrono>
#include <memory>
#include <numeric>
#include <vector>

#include "support/rank_test.h"

namespace fedrun::test {

// Collective over the process's own group.
inline std::unique_ptr<Backend> make_device_world(std::chrono::seconds limit = std::chrono::seconds(60)) {
  Communicator& base = process().world();
  const Gather gather = [&base](const void* mine, std::size_t bytes, void* all) {
    const auto count = static_cast<std::size_t>(base.size());
    base.allgather({mine, bytes, DataType::u8}, {.data = all, .count = count * bytes, .type = DataType::u8},
                   std::vector<std::size_t>(count, bytes));
  };
  // The mpi backend treats every rank as a host of its own.
  const bool is_mpi = process().env().backend == BackendChoice::mpi;
  std::vector<int> hosts(static_cast<std::size_t>(base.size()), 0);
  if (is_mpi) std::iota(hosts.begin(), hosts.end(), 0);
  return make_world_backend({base.rank(), hosts}, gather,
                            {.wait = {.each_rank_has_a_core = false, .abort_after = limit},
                             .make_links = is_mpi ? MakeLinks(MpiRuntime::make_links) : MakeLinks(),
                             .make_device_group = nccl_groups(process().gpu_in_use().value())});
}

}  // namespace fedrun::test
