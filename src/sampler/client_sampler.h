// Chooses the clients that train in a round of federated averaging: the same ones on every rank, without a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fedrun {

enum class ClientSampling {
  fixed,    // exactly per_round different clients, in random order; all of them, in order, if that is everybody
  poisson,  // each client by itself, with probability per_round / total: the number varies, and may be 0
};

struct ClientSamplerOptions {
  ClientSampling method = ClientSampling::fixed;
  // With seed 0 the fixed choice is that of FedML and of many published results, which depends on the round alone:
  // numpy.random.seed(round), then numpy.random.choice(total, per_round, replace=False).
  std::uint64_t seed = 0;
};

// Only reads itself: any number of threads may ask one sampler.
class ClientSampler {
 public:
  // Throws UsageError unless 1 <= per_round <= total.
  ClientSampler(std::size_t total, std::size_t per_round, ClientSamplerOptions options = {});

  // Another attempt at the same round chooses other clients, unless that is everybody.
  std::vector<std::size_t> clients_of_round(std::uint64_t round, int attempt = 0) const;

  std::size_t total() const { return total_; }
  std::size_t per_round() const { return per_round_; }

 private:
  std::size_t total_;
  std::size_t per_round_;
  ClientSamplerOptions options_;
};

}  // namespace fedrun
