// BatchNorm over the batches of all ranks of a group, for batches that are too small to normalise alone.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <torch/torch.h>

#include <string>

namespace fedrun {

// What a BatchNorm learns and keeps; undefined where its options say that it has none.
struct BatchNormTensors {
  torch::Tensor weight;
  torch::Tensor bias;
  torch::Tensor running_mean;
  torch::Tensor running_var;
  torch::Tensor num_batches_tracked;
};

// Takes (N, channels, …) with any number of dimensions, and computes what torch::nn::BatchNorm1d, 2d and 3d compute
// from the batches of all ranks put together. Ranks may bring batches of different sizes, also empty ones.
//
// While it trains, forward and backward are collective: every rank of the group calls them, backward too where a rank's
// batch is empty, and the group must outlive the layer. Gradients are those of the sum of all ranks' losses; as for any
// other layer, those of weight and bias are this rank's part, for the optimizer to reduce. There is no second
// derivative. Evaluation uses the running statistics, or without them this rank's batch, and communicates nothing.
//
// A layer without a group normalises over the batch of this rank, until convert_sync_batch_norm gives it one.
class SyncBatchNormImpl : public torch::nn::Cloneable<SyncBatchNormImpl> {
 public:
  explicit SyncBatchNormImpl(const torch::nn::BatchNormOptions& layer_options);
  SyncBatchNormImpl(const torch::nn::BatchNormOptions& layer_options, Communicator& group);
  // Adopts the tensors of another layer: both go on with the same ones.
  SyncBatchNormImpl(const torch::nn::BatchNormOptions& layer_options, const BatchNormTensors& tensors);

  torch::Tensor forward(const torch::Tensor& input);

  // The name, which must be the same on all ranks, appears in messages and timelines.
  void set_group(Communicator& group, const std::string& name = "SyncBatchNorm");

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  torch::nn::BatchNormOptions options;
  torch::Tensor weight;
  torch::Tensor bias;
  torch::Tensor running_mean;
  torch::Tensor running_var;
  torch::Tensor num_batches_tracked;

 private:
  void adopt(const BatchNormTensors& tensors);
  void check_input(const torch::Tensor& input) const;
  torch::Tensor normalise_alone(const torch::Tensor& input);
  torch::Tensor normalise_together(const torch::Tensor& input);
  // How much the newest batch counts in the running statistics; counts that batch.
  double count_batch();

  Communicator* group_ = nullptr;
  std::string name_ = "SyncBatchNorm";
};

TORCH_MODULE(SyncBatchNorm);

}  // namespace fedrun
