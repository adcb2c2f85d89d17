// Times contenders against each other: interleaved, so that whatever else the machine does hits all of them alike.
#pragma once

#include <fedrun/collectives/communicator.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "contender.h"

namespace fedrun::bench {

struct Rounds {
  int warmup = 0;      // not timed, but checked
  int iterations = 1;  // each gives one time per contender
};

// Of one contender, the same on every rank.
struct Measurement {
  double time_us = 0;      // of one call: the median over iterations of the slowest rank's time
  std::int64_t wrong = 0;  // elements, over all ranks and all iterations
};

// Collective. One measurement for each contender, in their order.
std::vector<Measurement> measure(Communicator& world, const Workload& workload,
                                 std::span<const std::unique_ptr<Contender>> contenders, const Rounds& rounds);

}  // namespace fedrun::bench
