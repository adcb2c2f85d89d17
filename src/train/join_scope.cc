#include <fedrun/core/error.h>
#include <fedrun/train/broadcast.h>
#include <fedrun/train/join_scope.h>
#include <fedrun/train/optimizer_state.h>

namespace fedrun {

int join_scope(DistributedOptimizer& optimizer, torch::nn::Module& model, const std::function<void()>& loop) {
  if (optimizer.is_sharded()) {
    throw UsageError(
        "join_scope: a rank that has run out of data would no longer step its part of a sharded optimizer: leave "
        "sharded off, or give every rank the same number of batches");
  }
  loop();
  if (optimizer.pending_passes() > 0) optimizer.step();
  Communicator& group = optimizer.group();
  const int last = group.join();
  broadcast_parameters(group, model, {.root = last});
  broadcast_tensors(group, optimizer.master_weights(), {.root = last});
  broadcast_optimizer_state(group, optimizer, {.root = last});
  optimizer.reducer().agree_on_places();
  return last;
}

}  // namespace fedrun
