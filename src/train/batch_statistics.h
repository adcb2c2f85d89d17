// Mean and variance of each channel over the batches of all ranks, and the normalisation by them.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <torch/torch.h>

#include <string>

namespace fedrun {

// Of all ranks' values of each channel; the tensors are f64 and the same bits on every rank.
struct BatchStatistics {
  torch::Tensor mean;
  torch::Tensor variance;  // the mean square deviation
  double count = 0;        // values in a channel
};

// Collective: one allreduce. The input is f32 or f64, (N, channels, …), and may be empty.
BatchStatistics gather_batch_statistics(Communicator& group, const torch::Tensor& input, const std::string& name);

// What normalising by shared statistics needs besides the tensors.
struct SharedNormalisation {
  Communicator& group;
  BatchStatistics statistics;
  double eps;
  std::string name;
};

// (input - mean) / √(variance + eps) · weight + bias. Weight and bias may be undefined. Backward is collective where
// the input requires a gradient: one allreduce.
torch::Tensor normalise(const torch::Tensor& input, const torch::Tensor& weight, const torch::Tensor& bias,
                        const SharedNormalisation& shared);

}  // namespace fedrun
