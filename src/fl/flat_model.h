// A model whose parameters, gradients and running statistics each lie in one piece, so that a round moves few things.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace fedrun::fl {

// Moves a module's float parameters and buffers into memory of its own; the module goes on as before, and optimizers on
// its parameters work as ever. Counters and other buffers stay where they are. Used by one thread; the module and the
// group must outlive it.
class FlatModel {
 public:
  // Throws UsageError for parameters that are not f32 on one device of this rank, and for a model without parameters.
  FlatModel(torch::nn::Module& module, Communicator& group);

  // Parameters, then float buffers.
  const torch::Tensor& state() const { return state_; }
  // The parameters alone. Its grad() is gradients(): an optimizer on this one tensor steps the whole model.
  const torch::Tensor& weights() const { return weights_; }
  const torch::Tensor& gradients() const { return gradients_; }
  const torch::Tensor& buffers() const { return buffers_; }

  std::int64_t weight_count() const { return weights_.numel(); }
  std::int64_t state_count() const { return state_.numel(); }

  // Gives counters, such as BatchNorm's of batches, the values that they had at first: how far they have come depends
  // on which clients have trained on this rank.
  void reset_counters();

  // Lets go of every .grad(), so that backward() puts fresh gradients wherever it likes instead of adding to these.
  void release_gradients();
  // Brings gradients home that backward() has put elsewhere, because somebody let go of .grad().
  void collect_gradients();

 private:
  std::vector<torch::Tensor> parameters_;
  std::shared_ptr<Memory> memory_;  // of the gradients, which the group reduces where they lie; shared with them
  torch::Tensor state_;
  torch::Tensor weights_;
  torch::Tensor buffers_;
  torch::Tensor gradients_;
  std::vector<torch::Tensor> gradient_views_;  // one per parameter
  std::vector<torch::Tensor> counters_;        // buffers of the module that are not f32
  std::vector<torch::Tensor> first_counters_;  // what they were at first
};

}  // namespace fedrun::fl
