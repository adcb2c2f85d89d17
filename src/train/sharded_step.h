// Divides the work and the memory of an optimizer among the ranks: each steps its part of the parameters and gives it
// to the others, as ZeRO does in its first stage.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/train/gradient_reducer.h>
#include <torch/torch.h>

#include <memory>
#include <vector>

namespace fedrun {

// The optimizer gets pieces of this rank's part instead of whole parameters. It treats each element alone, so the
// results are those of whole parameters, to the bit. A piece is small enough that the passes that Torch makes over it
// find it in the cache.
//
// Used by the thread that steps.
class ShardedStep {
 public:
  // Throws UsageError for optimizers that look at whole parameters. The reducer must reduce to parts; both of these
  // must outlive this object.
  ShardedStep(Communicator& group, torch::optim::Optimizer& optimizer, GradientReducer& reducer);

  // After the gradients have been reduced, and before the optimizer steps: takes in what is new and hands out
  // gradients.
  void prepare();

  // After it has stepped: every rank receives what the others have stepped.
  void share();

  // Has the optimizer got pieces yet? Until a parameter's first gradient it has the whole parameter.
  bool has_pieces() const { return !parameters_.empty(); }

  // The norm of all gradients, of which this rank has a part. Collective.
  double gradient_norm(double norm_type) const;
  void scale_gradients(double factor) const;

 private:
  struct Piece {
    std::size_t parameter;
    torch::Tensor elements;  // where the parameter lies
    torch::Tensor gradient;  // where its gradient lies
  };

  void take_in(const GradientBucket& bucket);
  void cut(const GradientBucket& bucket, const BucketSlot& slot);
  bool was_used(const GradientBucket& bucket) const;

  Communicator& group_;
  torch::optim::Optimizer& optimizer_;
  GradientReducer& reducer_;
  std::vector<std::size_t> option_groups_;  // of the optimizer, by parameter
  // Where the parameters of each bucket lie; shared with them, because users keep them longer than the optimizer.
  std::vector<std::shared_ptr<Memory>> parameters_;
  std::vector<Piece> pieces_;
};

}  // namespace fedrun
