#include <fedrun/core/error.h>
#include <fedrun/sampler/distributed_sampler.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace fedrun {
namespace {

// A whole number from 0 to bound - 1, each equally likely. 2^64 is rarely a multiple of bound, so the lowest
// 2^64 mod bound draws are rejected; what remains is a multiple.
std::uint64_t draw_below(std::uint64_t bound, std::mt19937_64& generator) {
  const std::uint64_t rejected = (0 - bound) % bound;
  std::uint64_t draw = generator();
  while (draw < rejected) draw = generator();
  return draw % bound;
}

// Fisher–Yates from the end. The standard fixes what mt19937_64 yields but not what std::shuffle makes of it, and ranks
// that run different standard libraries must agree.
void shuffle(std::vector<size_t>& order, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  for (size_t remaining = order.size(); remaining > 1; --remaining) {
    std::swap(order[remaining - 1], order[draw_below(remaining, generator)]);
  }
}

void check_rank(int rank, int replicas) {
  if (replicas < 1)
    throw UsageError(fmt::format("DistributedSampler: replicas is {}, but must be at least 1", replicas));
  if (rank < 0 || rank >= replicas) {
    throw UsageError(fmt::format("DistributedSampler: rank {} is not one of the {} replicas: pass a rank from 0 to {}",
                                 rank, replicas, replicas - 1));
  }
}

}  // namespace

struct DistributedSampler::State {
  size_t dataset_size;
  size_t rank;
  size_t replicas;
  DistributedSamplerOptions options;

  size_t epoch = 0;
  size_t next_epoch = 0;
  bool begun = false;
  std::vector<size_t> indices;  // of this rank in this epoch
  size_t handed_out = 0;

  size_t indices_of_rank() const {
    const size_t floor = dataset_size / replicas;
    const size_t left_over = dataset_size % replicas;
    switch (options.tail) {
      case Tail::drop:
        return floor;
      case Tail::uneven:
        return floor + (rank < left_over ? 1 : 0);
      case Tail::pad:
        break;
    }
    return floor + (left_over > 0 ? 1 : 0);
  }

  void deal() {
    std::vector<size_t> order(dataset_size);
    std::iota(order.begin(), order.end(), size_t{0});
    if (options.shuffle) shuffle(order, options.seed + epoch);

    indices.resize(indices_of_rank());
    // Only padding runs past the end of the order, and starts over there.
    for (size_t i = 0; i < indices.size(); ++i) indices[i] = order[(rank + i * replicas) % dataset_size];
    handed_out = 0;
  }
};

DistributedSampler::DistributedSampler(size_t dataset_size, int rank, int replicas, DistributedSamplerOptions options) {
  check_rank(rank, replicas);
  state_ = std::make_shared<State>(State{.dataset_size = dataset_size,
                                         .rank = static_cast<size_t>(rank),
                                         .replicas = static_cast<size_t>(replicas),
                                         .options = options,
                                         .indices = {}});
}

void DistributedSampler::reset(std::optional<size_t> new_size) {
  State& state = *state_;
  if (new_size) state.dataset_size = *new_size;
  state.epoch = state.next_epoch;
  state.next_epoch = state.epoch + 1;
  state.begun = true;
  state.deal();
}

std::optional<std::vector<size_t>> DistributedSampler::next(size_t batch_size) {
  if (batch_size == 0) throw UsageError("DistributedSampler: a batch of 0 samples never ends: use a batch size from 1");
  State& state = *state_;
  if (!state.begun) reset();
  const size_t count = std::min(batch_size, state.indices.size() - state.handed_out);
  if (count == 0) return std::nullopt;
  const auto first = state.indices.begin() + static_cast<std::ptrdiff_t>(state.handed_out);
  state.handed_out += count;
  return std::vector<size_t>(first, first + static_cast<std::ptrdiff_t>(count));
}

void DistributedSampler::set_epoch(size_t epoch) { state_->next_epoch = epoch; }

size_t DistributedSampler::epoch() const { return state_->begun ? state_->epoch : state_->next_epoch; }

size_t DistributedSampler::size() const { return state_->indices_of_rank(); }

}  // namespace fedrun
