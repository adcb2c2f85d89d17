// Wraps any torch::optim optimizer so that every rank steps with the gradients of all ranks.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/train/adasum_step.h>
#include <fedrun/train/gradient_reducer.h>
#include <fedrun/train/master_weights.h>
#include <fedrun/train/sharded_step.h>
#include <torch/torch.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fedrun {

enum class Accumulation { sum, mean };

struct DistributedOptimizerOptions {
  // average or sum of the gradients; adasum: every rank steps alone, and Adasum combines what the steps changed.
  ReduceOp op = ReduceOp::average;
  std::shared_ptr<Compression> compression = Compression::none;

  // Gradients of so many backward passes become one step; they are added up, or averaged.
  int backward_passes_per_step = 1;
  Accumulation accumulation = Accumulation::sum;

  // Gradients are divided by it before they are added up and multiplied afterwards, against overflow. Average only.
  double gradient_predivide_factor = 1;

  // Parameters that are reduced together: so many equal groups in the order of named_parameters, or these lists.
  int group_count = 0;
  std::vector<std::vector<torch::Tensor>> groups{};

  // Sparse gradients are gathered, which pays where few rows are used. As dense ones they are reduced like all others.
  bool sparse_as_dense = false;

  // Each rank steps only its part of the parameters and keeps the optimizer's state for no more than that. Same
  // results.
  bool sharded = false;

  // Of parameters with 16 bits: the optimizer steps copies of them in f32, and their gradients are added up and reduced
  // in f32. Such a parameter has no .grad() after synchronize(): clip with clip_gradient_norm().
  bool master_weights = false;

  BucketSizes buckets{};
};

// Gradients are reduced while backward() runs; step() waits for them and steps. Construction is collective and compares
// the parameters of all ranks. Used by one thread, the one that calls backward(). The group must outlive it.
class DistributedOptimizer {
 public:
  // named_parameters must name every parameter of the optimizer once; it may hold others. Parameters may be frozen and
  // unfrozen at any time.
  DistributedOptimizer(Communicator& group, std::unique_ptr<torch::optim::Optimizer> optimizer,
                       const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
                       const DistributedOptimizerOptions& options = {});

  // Throws UsageError between backward() and step(): the gradients are being reduced.
  void zero_grad(bool set_to_none = true);

  // Waits for the reduced gradients without stepping, so that they can be clipped or looked at; step() then only steps.
  // Sharded, each rank has only its part of them: use clip_gradient_norm().
  void synchronize();

  // After fewer backward passes than backward_passes_per_step, it reduces and steps with what there is. A closure's
  // loss is reduced as gradients are, so that optimizers which look at it, as LBFGS does, do the same on every rank.
  torch::Tensor step(const torch::optim::Optimizer::LossClosure& closure = nullptr);

  // Scales the reduced gradients of all parameters so that their norm is at most max_norm; returns the norm before.
  double clip_gradient_norm(double max_norm, double norm_type = 2);

  // While the guard lives, backward() only adds gradients up on this rank.
  class [[nodiscard]] NoSync {
   public:
    explicit NoSync(GradientReducer& reducer) : reducer_(reducer) { reducer_.set_reducing(false); }
    ~NoSync() { reducer_.set_reducing(true); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    GradientReducer& reducer_;
  };
  NoSync no_sync() { return NoSync(*reducer_); }

  // While the guard lives, step() insists on an earlier synchronize(). It is never needed: step() after synchronize()
  // reduces nothing. It is here for programs that were written for Horovod.
  class [[nodiscard]] SkipSynchronize {
   public:
    explicit SkipSynchronize(bool& is_skipping) : is_skipping_(is_skipping) { is_skipping_ = true; }
    ~SkipSynchronize() { is_skipping_ = false; }
    SkipSynchronize(const SkipSynchronize&) = delete;
    SkipSynchronize& operator=(const SkipSynchronize&) = delete;

   private:
    bool& is_skipping_;
  };
  SkipSynchronize skip_synchronize() { return SkipSynchronize(skips_synchronize_); }

  // Backward passes since the last step that wait for more: not 0 at the end of an epoch means that step() flushes
  // them.
  int pending_passes() const { return reducer_->passes(); }

  // The optimizer inside, for learning rate schedules and for saving its state. Sharded, it knows only this rank's
  // part; with master weights it knows those.
  torch::optim::Optimizer& inner() { return *optimizer_; }
  Communicator& group() { return group_; }
  bool is_sharded() const { return sharded_.has_value(); }
  // Does inner() hold only this rank's part of the state? A sharded one does from its first step on.
  bool has_part_of_state() const { return sharded_ && sharded_->has_pieces(); }
  // The f32 copies of parameters, under their names; none without that option.
  NamedTensors master_weights() const;
  GradientReducer& reducer() { return *reducer_; }

  // Seconds that this rank has spent in communication, waiting for other ranks included.
  double communication_seconds() const { return communication_seconds_ + reducer_->communication_seconds(); }

 private:
  void finish_gradients();
  bool is_reduced() const;  // synchronize() was called, and no gradient has arrived since
  void check_parameter_groups() const;

  Communicator& group_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<GradientReducer> reducer_;  // its hooks hold its address
  std::optional<ShardedStep> sharded_;
  std::optional<AdasumStep> adasum_;
  std::optional<MasterWeights> masters_;
  ReduceOp op_;
  std::size_t parameter_groups_ = 0;
  bool reduced_ = false;  // synchronize() was called, and neither step() nor zero_grad() since
  bool skips_synchronize_ = false;
  double communication_seconds_ = 0;
};

}  // namespace fedrun
