// Deals the indices of a data set out to the ranks, so that in each epoch every rank trains on its own part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace fedrun {

// What happens to the last indices when the ranks do not divide the data set.
enum class Tail {
  pad,     // every rank gets ceil(n / replicas): the start of the order is repeated, as often as it takes
  drop,    // every rank gets floor(n / replicas): the end of the order is left out in this epoch
  uneven,  // each index exactly once, so ranks may differ by one: for exact evaluation
};

struct DistributedSamplerOptions {
  bool shuffle = true;
  std::uint64_t seed = 0;  // the same on every rank, or the parts overlap
  Tail tail = Tail::pad;
};

// Has the semantics of torch.utils.data.DistributedSampler: one order for all ranks, shuffled by seed + epoch, of which
// rank r takes the positions r, r + replicas, r + 2 replicas, …  No message is needed.
//
// It fits torch::data::make_data_loader without including LibTorch, because the loader asks for no base class, only for
// BatchRequestType, reset and next. The loader calls reset whenever an iteration begins: the first is epoch 0 and each
// later one is the next epoch, so nobody can forget to advance it.
//
// Copies share their state: the loader keeps a copy, and set_epoch on the caller's object has to reach it. Hence one
// sampler serves one loader at a time.
//
// Not thread-safe, copies included. A loader with worker threads is fine: it calls its sampler only from the thread
// that iterates.
class DistributedSampler {
 public:
  using BatchRequestType = std::vector<size_t>;

  // Throws UsageError unless 0 <= rank < replicas.
  DistributedSampler(size_t dataset_size, int rank, int replicas, DistributedSamplerOptions options = {});

  // Begins an epoch: the one that set_epoch chose, else 0 the first time and the next one after that. A new size takes
  // effect at once and stays.
  void reset(std::optional<size_t> new_size = std::nullopt);

  // The next indices of this rank: batch_size of them, fewer at the end of the epoch, nullopt after it. Begins the
  // first epoch when reset has not been called yet. Throws UsageError for a batch_size of 0.
  std::optional<std::vector<size_t>> next(size_t batch_size);

  // Makes the next reset begin this epoch: to resume a run, or out of habit in every epoch.
  void set_epoch(size_t epoch);

  // The epoch that is running; before the first one, the epoch that will run.
  size_t epoch() const;

  // How many indices this rank gets in one epoch.
  size_t size() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared by all copies, see above
};

}  // namespace fedrun
