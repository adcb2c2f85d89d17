#include <fedrun/core/error.h>
#include <fedrun/core/keyed_random.h>
#include <fedrun/sampler/client_sampler.h>
#include <fmt/format.h>

#include <bit>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

namespace fedrun {
namespace {

// The streams from first_attempt_stream on are for the attempts after the first.
enum RandomStream : std::uint64_t { fixed_stream, poisson_stream, first_attempt_stream };

std::mt19937 generator_of_round(std::uint64_t seed, std::uint64_t stream, std::uint64_t round) {
  const std::uint64_t key = seed == 0 && stream == fixed_stream ? round : KeyedRandom(seed, stream, round).next();
  return std::mt19937(static_cast<std::uint32_t>(key));
}

// From 0 to largest, both included: draws are cut to the bits that largest has, and rejected where they exceed it.
// std::uniform_int_distribution may be anything, but others' results depend on just this.
std::uint32_t draw_up_to(std::uint32_t largest, std::mt19937& generator) {
  const std::uint32_t mask = std::numeric_limits<std::uint32_t>::max() >> std::countl_zero(largest);
  std::uint32_t draw = 0;
  do {
    draw = static_cast<std::uint32_t>(generator()) & mask;
  } while (draw > largest);
  return draw;
}

// Fisher–Yates over everybody, although only the beginning is used: the shuffle works from the end.
std::vector<std::size_t> draw_fixed(std::size_t total, std::size_t count, std::mt19937 generator) {
  std::vector<std::size_t> order(total);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = total - 1; i > 0; --i) {
    std::swap(order[i], order[draw_up_to(static_cast<std::uint32_t>(i), generator)]);
  }
  order.resize(count);
  return order;
}

}  // namespace

ClientSampler::ClientSampler(std::size_t total, std::size_t per_round, ClientSamplerOptions options)
    : total_(total), per_round_(per_round), options_(options) {
  if (per_round < 1 || per_round > total) {
    throw UsageError(
        fmt::format("{} of {} clients cannot train in a round: choose a number from 1 to {}", per_round, total, total));
  }
  if (total > std::numeric_limits<std::uint32_t>::max()) {
    throw UsageError(fmt::format("{} clients are too many: at most 2^32 - 1 can be drawn from", total));
  }
}

std::vector<std::size_t> ClientSampler::clients_of_round(std::uint64_t round, int attempt) const {
  const auto stream_of = [&](RandomStream first) {
    return attempt == 0 ? std::uint64_t{first} : first_attempt_stream + static_cast<std::uint64_t>(attempt);
  };
  if (options_.method == ClientSampling::fixed && per_round_ < total_) {
    return draw_fixed(total_, per_round_, generator_of_round(options_.seed, stream_of(fixed_stream), round));
  }
  const double probability = static_cast<double>(per_round_) / static_cast<double>(total_);
  KeyedRandom random(options_.seed, stream_of(poisson_stream), round);
  std::vector<std::size_t> clients;
  for (std::size_t client = 0; client < total_; ++client) {
    if (random.unit() < probability) clients.push_back(client);
  }
  return clients;
}

}  // namespace fedrun
