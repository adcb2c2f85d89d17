// fedrun itself, as programs call it.
#pragma once

#include <fedrun/collectives/communicator.h>

#include <memory>

#include "contender.h"

namespace fedrun::bench {

enum class MemoryKind { allocated, ordinary };  // from Communicator::allocate, or from the heap

// Collective.
std::unique_ptr<Contender> make_fedrun_contender(Communicator& world, const Workload& workload, MemoryKind memory);

}  // namespace fedrun::bench
