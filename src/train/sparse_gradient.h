// Gradients of embeddings that hold only the rows that were used.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <torch/torch.h>

#include <string_view>

namespace fedrun {

struct SparseReduction {
  ReduceOp op = ReduceOp::average;  // average or sum
  double scale = 1;
  std::string_view name{};
};

// Collective: the sum or average of the ranks' gradients, with the rows that any of them has, each once. The gradient
// may be sparse, dense or undefined, which is one without rows.
torch::Tensor reduce_sparse_gradient(Communicator& group, const torch::Tensor& gradient, const torch::Tensor& parameter,
                                     const SparseReduction& reduction);

}  // namespace fedrun
