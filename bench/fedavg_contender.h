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

// How the ranks share the work.
struct FedavgPlaces {
  int groups = 1;                      // of ranks, each of which trains one client at a time; fedrun only
  torch::Device device = torch::kCPU;  // of this rank; the tight loop works on the CPU
};

// Nothing where this rank only waits for the others. The data and the ranks must outlive it. Collective over all ranks.
// Throws UsageError for more groups than ranks.
std::unique_ptr<FedavgContender> make_contender(FedavgSystem system, const FedavgWorkload& workload,
                                                const fedavg::Data& data, Communicator& world,
                                                const FedavgPlaces& places);

}  // namespace fedrun::bench
