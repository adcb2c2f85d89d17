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

// Nothing where this rank only waits for the others. The data and the ranks must outlive it. Collective over all ranks.
std::unique_ptr<FedavgContender> make_contender(FedavgSystem system, const FedavgWorkload& workload,
                                                const fedavg::Data& data, Communicator& world);

}  // namespace fedrun::bench
