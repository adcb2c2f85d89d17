// Reduces gradients while backward is still at work: the last gradient of a bucket starts that bucket's reduction.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/train/compression.h>
#include <fedrun/train/gradient_bucket.h>
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace fedrun {

struct NamedParameter {
  std::string name;
  torch::Tensor tensor;
  int group = -1;  // parameters of the same group are reduced together; -1: as their sizes suggest
};

struct GradientReducerOptions {
  ReduceOp op = ReduceOp::average;
  std::shared_ptr<Compression> compression = Compression::none;  // shared: the user may keep one with state
  BucketSizes buckets{};
  int passes = 1;  // how many backward passes are added up before their gradients are reduced
  bool averages_passes = false;
  double predivide = 1;  // divide by it before the reduction, multiply afterwards
  bool sparse_as_dense = false;
  bool to_parts = false;  // each rank needs only its own part of each bucket
  bool widens = false;    // gradients of 16 bits are added up and reduced in f32, see widened_gradient()
};

// A window is the time from the first gradient to synchronize(). In a window each parameter receives at most one
// gradient from each pass. It lies in its bucket, and the buckets are reduced in the same order on every rank.
//
// A parameter gets a place in a bucket at the end of the first window in which any rank has a gradient for it; in the
// order in which they arrived on rank 0, which is better than a guess. So the first window is reduced at its end, and
// parameters that are frozen take no room until they are not.
//
// Hooks run on the thread that calls backward() or, for parameters on a GPU, on autograd's thread for that, one at a
// time by a lock; everything else is called by the thread that calls backward(), outside of it.
class GradientReducer {
 public:
  GradientReducer(Communicator& group, std::vector<NamedParameter> parameters, const GradientReducerOptions& options);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Returns when every gradient is reduced. A parameter without a gradient on this rank contributes zeros and receives
  // what the others made; one without a gradient on any rank stays without. So ranks whose graphs differ neither hang
  // nor drift apart.
  void synchronize();

  // Ends the window without the others: every rank goes on with its own gradients.
  void finish_alone();

  // While this is off, gradients are only added up on this rank.
  void set_reducing(bool is_reducing) { is_reducing_ = is_reducing; }

  // Have gradients arrived since the last synchronize() that are going to be reduced?
  bool window_open() const { return passes() > 0; }
  int passes() const { return passes_; }

  // Have any arrived since then, also such that are only added up on this rank?
  bool has_unreduced() const;

  // Forgets what was only added up. The gradients themselves are the caller's.
  void drop_unreduced();

  // Collective: ranks that joined while others went on may have missed places; then all of them start anew.
  void agree_on_places();

  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  std::size_t bucket_count() const;
  const GradientBucket& bucket(std::size_t index) const;
  // Is this parameter's gradient added up and reduced in another type than its own?
  bool is_widened(std::size_t parameter) const;
  // That gradient after synchronize(), in f32; undefined where no rank had one. The parameter itself has none then.
  torch::Tensor widened_gradient(std::size_t parameter) const;

  // Did any rank have a gradient for it in the last window?
  bool was_used(std::size_t parameter) const { return used_[parameter] != 0; }

  // Time that this rank has spent in communication rather than in its own work.
  double communication_seconds() const { return communication_seconds_; }

 private:
  struct Slot;
  struct LiveBucket;
  class GradientArrived;

  torch::Tensor move_into_bucket(std::size_t parameter, const torch::Tensor& gradient);
  void gradient_arrived(std::size_t parameter);
  void launch_complete_buckets();
  void launch(LiveBucket& bucket);
  void take_in_stray_gradient(std::size_t parameter);
  bool lies_elsewhere(std::size_t parameter) const;
  void pack_on_device(LiveBucket& bucket);
  void widen(std::size_t parameter);
  bool has_gradient(std::size_t parameter) const;
  void reduce_window();
  void complete_partial_mean();
  std::vector<std::size_t> order_of_arrival(std::vector<std::size_t> parameters);
  void place(const std::vector<std::size_t>& parameters);
  bool all_ranks_take_part();
  double scale_of_passes() const { return options_.averages_passes ? 1.0 / options_.passes : 1.0; }
  void reduce_sparse();
  void wait_for_all();
  void close_window();

  std::mutex mutex_;  // of the hooks
  Communicator& group_;
  std::vector<NamedParameter> parameters_;
  GradientReducerOptions options_;
  std::string name_;                                  // of this reducer, as the others call it
  std::vector<Slot> slots_;                           // by parameter
  std::vector<std::unique_ptr<LiveBucket>> buckets_;  // each stays where it is: compressions refer to it
  std::vector<std::size_t> arrivals_;  // parameters without a place, in the order of their first gradients
  std::vector<std::uint8_t> used_;     // by parameter: what any rank had for it in the last window
  std::size_t next_bucket_ = 0;        // the first that has not been launched in this window
  int passes_ = 0;                     // that have begun in this window
  bool is_reducing_ = true;
  double communication_seconds_ = 0;
};

}  // namespace fedrun
