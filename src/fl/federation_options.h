// What a federation can be told; the defaults are plain FedAvg.
#pragma once

#include <fedrun/fl/round_sum.h>
#include <fedrun/sampler/client_sampler.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace fedrun::fl {

// What happens to running statistics such as BatchNorm's; counters and other whole numbers are not averaged:
// every client begins with those of the beginning.
enum class BufferRule {
  average,  // like FedAvg's weights
  local,    // each client keeps its own, on the rank group that trains it; the global model's stay as they were
  skip,     // every client begins with those of the beginning
};

struct FederationOptions {
  std::size_t clients_per_round = 1;
  ClientSamplerOptions sampling{};
  std::uint64_t seed = 0;       // of what is random in training and noise
  std::size_t min_clients = 1;  // with fewer that finish, the round has failed
  int round_attempts = 1;       // a failed round is repeated with other clients; run_round() then throws
  std::chrono::milliseconds client_timeout{0};  // a client that takes longer is left out; 0: none is
  BufferRule buffers = BufferRule::average;
  SumOrder sums = SumOrder::fast;  // exact: results do not depend on the number of ranks; needs groups of one rank

  // Each client's Δ is scaled down to this norm, and gets Gaussian noise of noise_multiplier · clip_norm; 0: neither.
  // No guarantee of privacy comes with it.
  double clip_norm = 0;
  double noise_multiplier = 0;
};

}  // namespace fedrun::fl
