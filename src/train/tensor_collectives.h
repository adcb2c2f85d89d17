// The collectives of a Communicator, for tensors.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/train/pending.h>
#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace fedrun {

// All of these are collective, and what communicator.h says holds: wrong arguments throw UsageError before anything is
// sent, and where the ranks disagree, in shapes too, every rank throws MismatchError and the group can be used
// afterwards. Tensors lie on the CPU or on this rank's GPU and may have any strides, no elements, or no dimensions.
//
// A row is what one index of the first dimension selects; a tensor without dimensions is one row.
//
// Gradients: the functions that wait and return new tensors take part in autograd, with the sum of the ranks' losses as
// what is differentiated. Their backward is collective as well: every rank runs it, and the group must still be there.
// The others, whose names end in _ or _async, do not take part: new tensors have no history.

using Tensors = std::vector<torch::Tensor>;
using PendingTensor = Pending<torch::Tensor>;
using PendingTensors = Pending<Tensors>;

// The functions that end in _ write into the tensor and return it.
torch::Tensor allreduce(Communicator& group, const torch::Tensor& tensor, const ReduceOptions& options = {});
torch::Tensor allreduce_(Communicator& group, const torch::Tensor& tensor, const ReduceOptions& options = {});
PendingTensor allreduce_async(Communicator& group, const torch::Tensor& tensor, const ReduceOptions& options = {});
PendingTensor allreduce_async_(Communicator& group, const torch::Tensor& tensor, const ReduceOptions& options = {});

// Grouped: all of the tensors succeed, or none does.
Tensors grouped_allreduce(Communicator& group, const Tensors& tensors, const ReduceOptions& options = {});
Tensors grouped_allreduce_(Communicator& group, const Tensors& tensors, const ReduceOptions& options = {});
PendingTensors grouped_allreduce_async(Communicator& group, const Tensors& tensors, const ReduceOptions& options = {});
PendingTensors grouped_allreduce_async_(Communicator& group, const Tensors& tensors, const ReduceOptions& options = {});

// Splits say how many rows each rank gets; none: equal parts, of which the first `rows % size` have one row more.
using Splits = std::vector<std::int64_t>;

// Rank r gets the r-th part of the rows of the reduced tensor.
torch::Tensor reduce_scatter(Communicator& group, const torch::Tensor& tensor, const ReduceOptions& options = {},
                             const Splits& splits = {});
PendingTensor reduce_scatter_async(Communicator& group, const torch::Tensor& tensor, const ReduceOptions& options = {},
                                   const Splits& splits = {});
Tensors grouped_reduce_scatter(Communicator& group, const Tensors& tensors, const ReduceOptions& options = {});
PendingTensors grouped_reduce_scatter_async(Communicator& group, const Tensors& tensors,
                                            const ReduceOptions& options = {});

// Every rank brings a tensor of the same shape and type and gets the root's values.
torch::Tensor broadcast(Communicator& group, const torch::Tensor& tensor, const BroadcastOptions& options = {});
torch::Tensor broadcast_(Communicator& group, const torch::Tensor& tensor, const BroadcastOptions& options = {});
PendingTensor broadcast_async(Communicator& group, const torch::Tensor& tensor, const BroadcastOptions& options = {});
PendingTensor broadcast_async_(Communicator& group, const torch::Tensor& tensor, const BroadcastOptions& options = {});

// Below, the ranks may bring different numbers of rows, and first tell each other how many. Therefore the _async forms
// of these return only when every rank has called them, and the ranks call them in the same order, named or not.

// The rows of all ranks, in rank order.
torch::Tensor allgather(Communicator& group, const torch::Tensor& tensor, const ExchangeOptions& options = {});
PendingTensor allgather_async(Communicator& group, const torch::Tensor& tensor, const ExchangeOptions& options = {});
Tensors grouped_allgather(Communicator& group, const Tensors& tensors, const ExchangeOptions& options = {});
PendingTensors grouped_allgather_async(Communicator& group, const Tensors& tensors,
                                       const ExchangeOptions& options = {});

// The same at the root; no rows elsewhere. Takes no part in autograd.
torch::Tensor gather(Communicator& group, const torch::Tensor& tensor, const GatherOptions& options = {});
PendingTensor gather_async(Communicator& group, const torch::Tensor& tensor, const GatherOptions& options = {});

// The first splits[0] rows go to rank 0, the next splits[1] to rank 1, …
struct Received {
  torch::Tensor tensor;  // the rows that the ranks sent here, in rank order
  Splits splits;         // how many each of them sent
};
inline torch::Device device_of_result(const Received& received) { return received.tensor.device(); }
Received alltoall(Communicator& group, const torch::Tensor& tensor, const Splits& splits = {},
                  const ExchangeOptions& options = {});
Pending<Received> alltoall_async(Communicator& group, const torch::Tensor& tensor, const Splits& splits = {},
                                 const ExchangeOptions& options = {});

}  // namespace fedrun
