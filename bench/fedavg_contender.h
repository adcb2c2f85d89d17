// The ways to do the work of federated rounds that fedavg_bench compares.
#pragma once

#include <fedrun/collectives/communicator.h>

#include <cstdint>
#include <memory>

#include "fedavg_flags.h"

namespace fedrun::bench {

class FedavgContender {
 public:
  virtual ~FedavgContender() = default;

  // Not timed.
  virtual void prepare(std::uint64_t /*round*/) {}
  // Timed.
  virtual void run(std::uint64_t round) = 0;
};

// Nothing where this rank only waits for the others. The data and the ranks must outlive it. `groups` of ranks train
// one client at a time each, in fedrun. Collective over all ranks. Throws UsageError for more groups than ranks.
std::unique_ptr<FedavgContender> make_contender(FedavgSystem system, const FedavgWorkload& workload,
                                                const fedavg::Data& data, Communicator& world, int groups);

}  // namespace fedrun::bench
