// Allreduce, reduce-scatter and broadcast of tensors: all ranks bring the same shape, so nothing is exchanged before.
#include <ATen/MemoryOverlap.h>
#include <fedrun/collectives/hash.h>
#include <fedrun/core/error.h>
#include <fedrun/train/differentiable.h>
#include <fedrun/train/tensor_buffer.h>
#include <fedrun/train/tensor_collectives.h>
#include <fedrun/train/tensor_rows.h>
#include <fmt/format.h>

#include <span>
#include <string>

namespace fedrun {
namespace {

std::uint64_t hash_of_shapes(const Tensors& tensors) {
  std::uint64_t hash = tensors.size();
  for (const torch::Tensor& tensor : tensors) {
    hash = hash_of(hash, static_cast<std::uint64_t>(tensor.dim()));
    for (const std::int64_t size : tensor.sizes()) hash = hash_of(hash, static_cast<std::uint64_t>(size));
  }
  return hash | 1;  // 0 means none
}

template <typename Options>
Options with_shapes(Options options, const Tensors& tensors) {
  options.shape = hash_of_shapes(tensors);
  return options;
}

// Tensors to write results into, and what lies contiguous in their place.
struct Targets {
  Tensors contiguous;
  std::vector<StridedResult> strided;
};

// Adasum works in host memory.
torch::Tensor pack_for(ReduceOp op, const torch::Tensor& tensor, std::string_view operation) {
  const torch::Tensor contiguous = pack(tensor, operation);
  return op == ReduceOp::adasum ? contiguous.cpu() : contiguous;
}

Targets in_place(const Tensors& tensors, std::string_view operation, ReduceOp op = ReduceOp::sum) {
  Targets targets;
  for (const torch::Tensor& tensor : tensors) {
    const torch::Tensor contiguous = pack_for(op, tensor, operation);
    if (is_recorded(tensor) && !tensor.is_leaf()) {
      throw UsageError(
          fmt::format("{0}: autograd has recorded how the tensor was computed, which would no longer be true: "
                      "use the form of {0} without _, or pass tensor.detach()",
                      operation));
    }
    if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes) {
      throw UsageError(fmt::format(
          "{}: elements of the tensor share memory, as expand() makes them: pass tensor.clone()", operation));
    }
    targets.contiguous.push_back(contiguous);
    if (contiguous.is_alias_of(tensor)) {
      // By this, autograd notices writes to what it has kept; tensors of inference mode are never kept.
      if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
    } else {
      targets.strided.push_back({tensor, contiguous});
    }
  }
  return targets;
}

std::vector<Buffer> buffers_of(const Tensors& tensors) {
  std::vector<Buffer> buffers;
  for (const torch::Tensor& tensor : tensors) buffers.push_back(buffer_of(tensor, "result"));
  return buffers;
}

torch::Tensor copy_of(const torch::Tensor& tensor, std::string_view operation) {
  const torch::Tensor contiguous = pack(tensor, operation);
  return contiguous.is_alias_of(tensor) ? contiguous.clone(torch::MemoryFormat::Contiguous) : contiguous;
}

Tensors copies_of(const Tensors& tensors, std::string_view operation) {
  Tensors copies;
  for (const torch::Tensor& tensor : tensors) copies.push_back(copy_of(tensor, operation));
  return copies;
}

void check_gradient(std::string_view operation, const torch::Tensor& tensor, ReduceOp op) {
  if (!is_recorded(tensor) || op == ReduceOp::sum || op == ReduceOp::average) return;
  throw UsageError(
      fmt::format("{}: op {} has no gradient, but the tensor requires one: use sum or average, or pass tensor.detach()",
                  operation, to_string(op)));
}

// What backward needs to know of a reduction; unlike ReduceOptions, it owns the name.
struct ReductionGradient {
  Communicator& group;
  ReduceOptions options;
  std::string name;

  ReductionGradient(Communicator& ranks, const ReduceOptions& forward)
      : group(ranks), options(forward), name(gradient_name(forward.name)) {
    options.name = {};
    options.shape = 0;
  }

  // How much more this rank's elements count than they would without a weight. Collective in a weighted average.
  double own_share() const {
    if (!options.weight) return 1;
    if (options.op == ReduceOp::sum) return *options.weight;
    double total = *options.weight;
    const std::string total_name = name.empty() ? name : name + ".weight";
    group.allreduce(std::span(&total, 1), {.op = ReduceOp::sum, .name = total_name});
    return total > 0 ? *options.weight * group.size() / total : 0;
  }
};

Gradient allreduce_gradient(Communicator& group, const ReduceOptions& options) {
  return [reduction = ReductionGradient(group, options)](const torch::Tensor& gradient) {
    ReduceOptions backward = reduction.options;
    backward.weight.reset();
    backward.name = reduction.name;
    const torch::Tensor reduced = allreduce(reduction.group, gradient, backward);
    return reduction.options.weight ? reduced * reduction.own_share() : reduced;
  };
}

Gradient reduce_scatter_gradient(Communicator& group, const torch::Tensor& input, const ReduceOptions& options) {
  return [reduction = ReductionGradient(group, options), sizes = input.sizes().vec()](const torch::Tensor& gradient) {
    const ReduceOptions& forward = reduction.options;
    const torch::Tensor all = allgather(reduction.group, gradient, {.name = reduction.name}).reshape(sizes);
    const double factor = forward.prescale * forward.postscale * reduction.own_share();
    return forward.op == ReduceOp::average ? all * factor / reduction.group.size() : all * factor;
  };
}

std::string member_name(std::string_view name, std::size_t index) {
  return name.empty() ? std::string() : fmt::format("{}.{}", name, index);
}

// Each of the outputs has its own place in the graph, so that backward needs only those that were used.
template <typename MakeGradient>
Tensors differentiable_each(const Tensors& inputs, Tensors outputs, const ReduceOptions& options,
                            MakeGradient make_gradient) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = member_name(options.name, i);
    ReduceOptions member = options;
    member.name = name;
    outputs[i] = differentiable(inputs[i], outputs[i], make_gradient(inputs[i], member));
  }
  return outputs;
}

}  // namespace

torch::Tensor allreduce(Communicator& group, const torch::Tensor& tensor, const ReduceOptions& options) {
  check_gradient("allreduce", tensor, options.op);
  return differentiable(tensor, allreduce_async(group, tensor, options).wait(), allreduce_gradient(group, options));
}

torch::Tensor allreduce_(Communicator& group, const torch::Tensor& tensor, const ReduceOptions& options) {
  return allreduce_async_(group, tensor, options).wait();
}

PendingTensor allreduce_async(Communicator& group, const torch::Tensor& tensor, const ReduceOptions& options) {
  const torch::Tensor input = pack_for(options.op, tensor, "allreduce");
  const torch::Tensor output = torch::empty(input.sizes(), input.options());
  auto work = group.allreduce_async(ConstBuffer(buffer_of(input, "input")), buffer_of(output, "output"),
                                    with_shapes(options, {input}));
  if (output.device() == tensor.device()) return {output, {input}, {}, std::move(work)};
  const torch::Tensor result = torch::empty(input.sizes(), input.options().device(tensor.device()));
  return {result, {input}, {{result, output}}, std::move(work)};
}

PendingTensor allreduce_async_(Communicator& group, const torch::Tensor& tensor, const ReduceOptions& options) {
  Targets targets = in_place({tensor}, "allreduce_", options.op);
  auto work = group.allreduce_async(buffer_of(targets.contiguous[0], "result"), with_shapes(options, {tensor}));
  return {tensor, std::move(targets.contiguous), std::move(targets.strided), std::move(work)};
}

Tensors grouped_allreduce(Communicator& group, const Tensors& tensors, const ReduceOptions& options) {
  for (const torch::Tensor& tensor : tensors) check_gradient("grouped_allreduce", tensor, options.op);
  return differentiable_each(
      tensors, grouped_allreduce_async(group, tensors, options).wait(), options,
      [&](const torch::Tensor&, const ReduceOptions& member) { return allreduce_gradient(group, member); });
}

Tensors grouped_allreduce_(Communicator& group, const Tensors& tensors, const ReduceOptions& options) {
  return grouped_allreduce_async_(group, tensors, options).wait();
}

PendingTensors grouped_allreduce_async(Communicator& group, const Tensors& tensors, const ReduceOptions& options) {
  const Tensors results = copies_of(tensors, "grouped_allreduce");
  auto work = group.grouped_allreduce_async(buffers_of(results), with_shapes(options, results));
  return {results, {}, {}, std::move(work)};
}

PendingTensors grouped_allreduce_async_(Communicator& group, const Tensors& tensors, const ReduceOptions& options) {
  Targets targets = in_place(tensors, "grouped_allreduce_");
  auto work = group.grouped_allreduce_async(buffers_of(targets.contiguous), with_shapes(options, tensors));
  return {tensors, std::move(targets.contiguous), std::move(targets.strided), std::move(work)};
}

torch::Tensor reduce_scatter(Communicator& group, const torch::Tensor& tensor, const ReduceOptions& options,
                             const Splits& splits) {
  check_gradient("reduce_scatter", tensor, options.op);
  return differentiable(tensor, reduce_scatter_async(group, tensor, options, splits).wait(),
                        reduce_scatter_gradient(group, tensor, options));
}

PendingTensor reduce_scatter_async(Communicator& group, const torch::Tensor& tensor, const ReduceOptions& options,
                                   const Splits& splits) {
  const torch::Tensor input = as_rows(pack(tensor, "reduce_scatter"));
  const Splits parts = check_splits(group, "reduce_scatter", input, splits);
  const torch::Tensor part = make_rows_like(input, parts[static_cast<std::size_t>(group.rank())]);
  auto work = group.reduce_scatter_async(buffer_of(input, "input"), buffer_of(part, "part"),
                                         element_counts(input, parts), with_shapes(options, {input}));
  return {part, {input}, {}, std::move(work)};
}

Tensors grouped_reduce_scatter(Communicator& group, const Tensors& tensors, const ReduceOptions& options) {
  for (const torch::Tensor& tensor : tensors) check_gradient("grouped_reduce_scatter", tensor, options.op);
  return differentiable_each(tensors, grouped_reduce_scatter_async(group, tensors, options).wait(), options,
                             [&](const torch::Tensor& tensor, const ReduceOptions& member) {
                               return reduce_scatter_gradient(group, tensor, member);
                             });
}

PendingTensors grouped_reduce_scatter_async(Communicator& group, const Tensors& tensors, const ReduceOptions& options) {
  Tensors inputs;
  Tensors parts;
  std::vector<Communicator::Scattered> scattered;
  for (const torch::Tensor& tensor : tensors) {
    const torch::Tensor& input = inputs.emplace_back(as_rows(pack(tensor, "grouped_reduce_scatter")));
    const Splits splits = check_splits(group, "grouped_reduce_scatter", input, {});
    const torch::Tensor& part =
        parts.emplace_back(make_rows_like(input, splits[static_cast<std::size_t>(group.rank())]));
    scattered.push_back({buffer_of(input, "input"), buffer_of(part, "part"), element_counts(input, splits)});
  }
  auto work = group.grouped_reduce_scatter_async(scattered, with_shapes(options, inputs));
  return {parts, std::move(inputs), {}, std::move(work)};
}

torch::Tensor broadcast(Communicator& group, const torch::Tensor& tensor, const BroadcastOptions& options) {
  const Gradient gradient = [&group, root = options.root,
                             name = gradient_name(options.name)](const torch::Tensor& own) {
    const torch::Tensor sum = allreduce(group, own, {.op = ReduceOp::sum, .name = name});
    // Zeros that still depend on the sum, so that differentiating once more is collective again.
    return group.rank() == root ? sum : sum.masked_fill(torch::ones({}, sum.options().dtype(torch::kBool)), 0);
  };
  return differentiable(tensor, broadcast_async(group, tensor, options).wait(), gradient);
}

torch::Tensor broadcast_(Communicator& group, const torch::Tensor& tensor, const BroadcastOptions& options) {
  return broadcast_async_(group, tensor, options).wait();
}

PendingTensor broadcast_async(Communicator& group, const torch::Tensor& tensor, const BroadcastOptions& options) {
  const torch::Tensor result = copy_of(tensor, "broadcast");
  auto work = group.broadcast_async(buffer_of(result, "result"), with_shapes(options, {result}));
  return {result, {}, {}, std::move(work)};
}

PendingTensor broadcast_async_(Communicator& group, const torch::Tensor& tensor, const BroadcastOptions& options) {
  Targets targets = in_place({tensor}, "broadcast_");
  auto work = group.broadcast_async(buffer_of(targets.contiguous[0], "result"), with_shapes(options, {tensor}));
  return {tensor, std::move(targets.contiguous), std::move(targets.strided), std::move(work)};
}

}  // namespace fedrun
