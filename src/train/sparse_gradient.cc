#include <fedrun/train/sparse_gradient.h>
#include <fedrun/train/tensor_collectives.h>
#include <fmt/format.h>

namespace fedrun {
namespace {

// Rows of the parameter: one sparse dimension, as embeddings make it.
torch::Tensor as_sparse_rows(const torch::Tensor& gradient, const torch::Tensor& parameter) {
  if (gradient.defined()) return (gradient.is_sparse() ? gradient : gradient.to_sparse(1)).coalesce();
  const torch::Tensor indices = torch::empty({1, 0}, parameter.options().dtype(torch::kInt64).requires_grad(false));
  std::vector<std::int64_t> sizes = parameter.sizes().vec();
  sizes[0] = 0;
  return torch::sparse_coo_tensor(indices, torch::empty(sizes, parameter.options().requires_grad(false)),
                                  parameter.sizes())
      .coalesce();
}

}  // namespace

torch::Tensor reduce_sparse_gradient(Communicator& group, const torch::Tensor& gradient, const torch::Tensor& parameter,
                                     const SparseReduction& reduction) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor mine = as_sparse_rows(gradient, parameter);
  const std::string rows_name = fmt::format("{}, rows", reduction.name);
  // In rank order, so that coalesce() adds them up in the same order everywhere.
  const torch::Tensor rows = allgather(group, mine.indices().t(), {.name = rows_name}).t().contiguous();
  const torch::Tensor values = allgather(group, mine.values(), {.name = reduction.name});
  const double divisor = reduction.op == ReduceOp::average ? group.size() : 1;
  return torch::sparse_coo_tensor(rows, values * (reduction.scale / divisor), parameter.sizes()).coalesce();
}

}  // namespace fedrun
