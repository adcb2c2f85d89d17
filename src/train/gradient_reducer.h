// Reduces gradients while backward is still at work: the last gradient of a bucket starts that bucket's allreduce.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/train/bucket_plan.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

namespace fedrun {

struct NamedParameter {
  std::string name;
  torch::Tensor tensor;
};

// A window is the time from the first gradient of a backward to synchronize(). In a window each parameter receives at
// most one gradient, which lies in its bucket, and the buckets are reduced in the planned order on every rank.
//
// Hooks run on the thread that calls backward(); everything else is called by that same thread.
class GradientReducer {
 public:
  GradientReducer(Communicator& group, std::vector<NamedParameter> parameters, ReduceOp op, const BucketSizes& sizes);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Returns when every gradient is reduced. A parameter without a gradient on this rank contributes zeros and receives
  // what the others made, so ranks whose graphs differ neither hang nor drift apart.
  void synchronize();

  // Have gradients arrived since the last synchronize()?
  bool window_open() const { return window_open_; }

 private:
  struct Slot;
  struct LiveBucket;
  class GradientArrived;

  torch::Tensor move_into_bucket(std::size_t parameter, const torch::Tensor& gradient);
  void gradient_arrived(std::size_t parameter);
  void launch_complete_buckets();
  void launch(LiveBucket& bucket);

  Communicator& group_;
  std::vector<NamedParameter> parameters_;
  ReduceOp op_;
  std::vector<Slot> slots_;  // by parameter
  std::vector<LiveBucket> buckets_;
  std::size_t next_bucket_ = 0;  // the first that has not been launched in this window
  bool window_open_ = false;
};

}  // namespace fedrun
