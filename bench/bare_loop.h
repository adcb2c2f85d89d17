// The limit: what an f32 sum in shared memory costs when there is nothing but the loop over the elements.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/collectives/topology.h>

#include <memory>

#include "contender.h"

namespace fedrun::bench {

// Collective. For ranks of one host and an f32 sum in place, by allreduce.
std::unique_ptr<Contender> make_bare_loop(Communicator& world, const Topology& topology, const Workload& workload);

}  // namespace fedrun::bench
