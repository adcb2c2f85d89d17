// fedrun itself, as programs call it.
#pragma once

#include <fedrun/collectives/communicator.h>

#include <memory>

#include "contender.h"

namespace fedrun::bench {

enum class MemoryKind { allocated, ordinary };  // from Communicator::allocate, or from the heap or CUDA

// Collective. With `copies`, the elements are on this rank's GPU: calls are put on its stream one after the other, as
// training does it, and only finish() waits for them.
std::unique_ptr<Contender> make_fedrun_contender(Communicator& world, const Workload& workload, MemoryKind memory,
                                                 DeviceCopies* copies);

}  // namespace fedrun::bench
