// Allgather, gather and alltoall of tensors: the ranks may bring different numbers of rows.
#include <fedrun/core/error.h>
#include <fedrun/train/differentiable.h>
#include <fedrun/train/tensor_buffer.h>
#include <fedrun/train/tensor_collectives.h>
#include <fedrun/train/tensor_rows.h>
#include <fmt/format.h>

#include <numeric>
#include <string>

namespace fedrun {
namespace {

std::int64_t total(const Splits& splits) { return std::accumulate(splits.begin(), splits.end(), std::int64_t{0}); }

// What the ranks know of each other once they have exchanged the numbers of their rows.
struct Gathering {
  Tensors mine;
  Tensors all;
  std::vector<Splits> rows;  // of each tensor, by rank
};

Gathering start_gathering(Communicator& group, std::string_view operation, const Tensors& tensors,
                          std::string_view name) {
  Gathering gathering;
  for (const torch::Tensor& tensor : tensors) gathering.mine.push_back(as_rows(pack(tensor, operation)));
  gathering.rows = exchange_row_counts(group, operation, gathering.mine, name);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    gathering.all.push_back(make_rows_like(gathering.mine[i], total(gathering.rows[i])));
  }
  return gathering;
}

std::unique_ptr<Work> start_allgather(Communicator& group, const Gathering& gathering, const ExchangeOptions& options) {
  return group.allgather_async(buffer_of(gathering.mine[0], "mine"), buffer_of(gathering.all[0], "all"),
                               element_counts(gathering.mine[0], gathering.rows[0]), options);
}

std::unique_ptr<Work> start_grouped_allgather(Communicator& group, const Gathering& gathering,
                                              const ExchangeOptions& options) {
  std::vector<Communicator::Gathered> parts;
  for (std::size_t i = 0; i < gathering.mine.size(); ++i) {
    parts.push_back({buffer_of(gathering.mine[i], "mine"), buffer_of(gathering.all[i], "all"),
                     element_counts(gathering.mine[i], gathering.rows[i])});
  }
  return group.grouped_allgather_async(parts, options);
}

// Each rank's rows went to all of them, so the gradients of all of them come back to it.
Gradient allgather_gradient(Communicator& group, const torch::Tensor& input, const Splits& rows, std::string name) {
  return [&group, sizes = input.sizes().vec(), rows, name = std::move(name)](const torch::Tensor& gradient) {
    return reduce_scatter(group, gradient, {.op = ReduceOp::sum, .name = name}, rows).reshape(sizes);
  };
}

}  // namespace

torch::Tensor allgather(Communicator& group, const torch::Tensor& tensor, const ExchangeOptions& options) {
  const Gathering gathering = start_gathering(group, "allgather", {tensor}, options.name);
  start_allgather(group, gathering, options)->wait();
  return differentiable(tensor, gathering.all[0],
                        allgather_gradient(group, tensor, gathering.rows[0], gradient_name(options.name)));
}

PendingTensor allgather_async(Communicator& group, const torch::Tensor& tensor, const ExchangeOptions& options) {
  Gathering gathering = start_gathering(group, "allgather", {tensor}, options.name);
  auto work = start_allgather(group, gathering, options);
  return {gathering.all[0], std::move(gathering.mine), {}, std::move(work)};
}

Tensors grouped_allgather(Communicator& group, const Tensors& tensors, const ExchangeOptions& options) {
  Gathering gathering = start_gathering(group, "grouped_allgather", tensors, options.name);
  start_grouped_allgather(group, gathering, options)->wait();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string name = options.name.empty() ? std::string() : fmt::format("{}.{}", options.name, i);
    gathering.all[i] = differentiable(tensors[i], gathering.all[i],
                                      allgather_gradient(group, tensors[i], gathering.rows[i], gradient_name(name)));
  }
  return gathering.all;
}

PendingTensors grouped_allgather_async(Communicator& group, const Tensors& tensors, const ExchangeOptions& options) {
  Gathering gathering = start_gathering(group, "grouped_allgather", tensors, options.name);
  auto work = start_grouped_allgather(group, gathering, options);
  return {std::move(gathering.all), std::move(gathering.mine), {}, std::move(work)};
}

torch::Tensor gather(Communicator& group, const torch::Tensor& tensor, const GatherOptions& options) {
  if (is_recorded(tensor)) {
    throw UsageError("gather: has no gradient, but the tensor requires one: use allgather, or pass tensor.detach()");
  }
  return gather_async(group, tensor, options).wait();
}

PendingTensor gather_async(Communicator& group, const torch::Tensor& tensor, const GatherOptions& options) {
  Gathering gathering = start_gathering(group, "gather", {tensor}, options.name);
  const torch::Tensor& mine = gathering.mine[0];
  const torch::Tensor all = group.rank() == options.root ? gathering.all[0] : make_rows_like(mine, 0);
  auto work = group.gather_async(buffer_of(mine, "mine"), buffer_of(all, "all"),
                                 element_counts(mine, gathering.rows[0]), options);
  return {all, std::move(gathering.mine), {}, std::move(work)};
}

Received alltoall(Communicator& group, const torch::Tensor& tensor, const Splits& splits,
                  const ExchangeOptions& options) {
  Received received = alltoall_async(group, tensor, splits, options).wait();
  // The gradients travel back the way the rows came.
  const Gradient gradient = [&group, sizes = tensor.sizes().vec(), back = received.splits,
                             name = gradient_name(options.name)](const torch::Tensor& own) {
    return alltoall(group, own, back, {.name = name}).tensor.reshape(sizes);
  };
  received.tensor = differentiable(tensor, received.tensor, gradient);
  return received;
}

Pending<Received> alltoall_async(Communicator& group, const torch::Tensor& tensor, const Splits& splits,
                                 const ExchangeOptions& options) {
  const torch::Tensor input = as_rows(pack(tensor, "alltoall"));
  const Splits sent = check_splits(group, "alltoall", input, splits);
  const Splits received = exchange_splits(group, "alltoall", input, sent, options.name);
  const torch::Tensor output = make_rows_like(input, total(received));
  auto work = group.alltoall_async(buffer_of(input, "input"), element_counts(input, sent), buffer_of(output, "output"),
                                   element_counts(input, received), options);
  return {Received{output, received}, {input}, {}, std::move(work)};
}

}  // namespace fedrun
