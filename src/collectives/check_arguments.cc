#include <fedrun/collectives/check_arguments.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numeric>

namespace fedrun {
namespace {

bool is_16_bit_float(DataType type) { return type == DataType::f16 || type == DataType::bf16; }

void check_memory(std::string_view operation, ConstBuffer buffer) {
  if (buffer.data != nullptr || buffer.count == 0) return;
  throw UsageError(
      fmt::format("{}: null pointer for {} elements of type {}", operation, buffer.count, to_string(buffer.type)));
}

void check_scale(std::string_view operation, std::string_view what, double scale) {
  if (!std::isfinite(scale)) throw UsageError(fmt::format("{}: {} {} must be finite", operation, what, scale));
}

void check_reduction(std::string_view operation, DataType type, const Reduction& reduction) {
  const bool is_scaled = reduction.prescale != 1 || reduction.postscale != 1;
  check_scale(operation, "prescale", reduction.prescale);
  check_scale(operation, "postscale", reduction.postscale);
  if (type == DataType::boolean) {
    if (reduction.op == ReduceOp::average) {
      throw UsageError(
          fmt::format("{}: bool elements have no average; use min (all of them) or max (any of them)", operation));
    }
    if (reduction.weight || is_scaled) {
      throw UsageError(fmt::format("{}: bool elements cannot be weighted or scaled", operation));
    }
  }
  if (reduction.op == ReduceOp::adasum && type != DataType::f32 && type != DataType::f64 && !is_16_bit_float(type)) {
    throw UsageError(fmt::format("{}: Adasum needs elements that are floating point, not {}; use sum or average",
                                 operation, to_string(type)));
  }
  if (reduction.wire && !(type == DataType::f32 && is_16_bit_float(*reduction.wire))) {
    throw UsageError(fmt::format("{}: {} elements cannot travel as {}: f32 can, as f16 or bf16", operation,
                                 to_string(type), to_string(*reduction.wire)));
  }
  if (!reduction.weight) return;
  if (reduction.op != ReduceOp::average && reduction.op != ReduceOp::sum) {
    throw UsageError(fmt::format("{}: a weight has no meaning for op {}; use average or sum, or leave it out",
                                 operation, to_string(reduction.op)));
  }
  if (!std::isfinite(*reduction.weight) || *reduction.weight < 0) {
    throw UsageError(
        fmt::format("{}: weight {} must be a finite number that is not negative", operation, *reduction.weight));
  }
}

// One count for each rank, with the given sum, of which this rank's is `mine`.
void check_counts(std::string_view operation, const std::vector<std::size_t>& counts, int rank, int ranks,
                  std::optional<std::size_t> total, std::size_t mine) {
  if (counts.size() != static_cast<std::size_t>(ranks)) {
    throw UsageError(fmt::format("{}: {} counts for {} ranks: give one for each", operation, counts.size(), ranks));
  }
  if (counts[static_cast<std::size_t>(rank)] != mine) {
    throw UsageError(fmt::format("{}: the counts [{}] say {} elements for rank {}, but its buffer has {}", operation,
                                 fmt::join(counts, ", "), counts[static_cast<std::size_t>(rank)], rank, mine));
  }
  const std::size_t sum = std::reduce(counts.begin(), counts.end());
  if (total && sum != *total) {
    throw UsageError(fmt::format("{}: the counts [{}] add up to {}, but the buffer has {} elements", operation,
                                 fmt::join(counts, ", "), sum, *total));
  }
}

void check_same_type(std::string_view operation, ConstBuffer input, Buffer output) {
  if (input.type == output.type) return;
  throw UsageError(fmt::format("{}: the input has elements of type {}, the output of type {}: they must agree",
                               operation, to_string(input.type), to_string(output.type)));
}

void check_root(std::string_view operation, int root, int ranks) {
  if (root >= 0 && root < ranks) return;
  throw UsageError(
      fmt::format("{}: root {} is not a rank of this group; it has ranks 0 to {}", operation, root, ranks - 1));
}

void check_device(const Operation& operation) {
  if (operation.kind == Collective::barrier || operation.kind == Collective::join) return;
  const std::string_view name = to_string(operation.kind);
  if (operation.output.count != 0 && operation.output.device != operation.input.device) {
    throw UsageError(fmt::format("{}: the input lies on the {}, the output on the {}: they must lie on the same", name,
                                 operation.input.device == Device::cpu ? "CPU" : "GPU",
                                 operation.output.device == Device::cpu ? "CPU" : "GPU"));
  }
  if (operation.is_on_device() && operation.reduction.op == ReduceOp::adasum) {
    throw UsageError(fmt::format("{}: Adasum works on elements in host memory: copy them there first", name));
  }
}

}  // namespace

void check_arguments(const Operation& operation, int rank, int ranks) {
  const std::string_view name = to_string(operation.kind);
  const auto& [kind, _, input, output, reduction, root, counts, receive_counts, group_digest, shape] = operation;
  if (operation.name.starts_with(internal_name)) {
    throw UsageError(
        fmt::format("{}: the name '{}' begins like those that fedrun gives: choose another", name, operation.name));
  }
  check_memory(name, input);
  check_memory(name, output);
  check_device(operation);
  switch (kind) {
    case Collective::allreduce:
      if (input.count != output.count || input.type != output.type) {
        throw UsageError(
            fmt::format("allreduce: the input has {} elements of type {}, the output {} of type {}: they must agree",
                        input.count, to_string(input.type), output.count, to_string(output.type)));
      }
      return check_reduction(name, input.type, reduction);
    case Collective::reduce_scatter:
      check_same_type(name, input, output);
      check_counts(name, counts, rank, ranks, input.count, output.count);
      if (reduction.op == ReduceOp::adasum) {
        throw UsageError("reduce_scatter: Adasum reduces whole tensors; use allreduce");
      }
      return check_reduction(name, input.type, reduction);
    case Collective::broadcast:
      return check_root(name, root, ranks);
    case Collective::allgather:
      check_same_type(name, input, output);
      return check_counts(name, counts, rank, ranks, output.count, input.count);
    case Collective::gather:
      check_same_type(name, input, output);
      check_root(name, root, ranks);
      return check_counts(name, counts, rank, ranks, rank == root ? std::optional(output.count) : std::nullopt,
                          input.count);
    case Collective::alltoall: {
      check_same_type(name, input, output);
      const auto own = static_cast<std::size_t>(rank);
      check_counts("alltoall (sent)", counts, rank, ranks, input.count, own < counts.size() ? counts[own] : 0);
      return check_counts("alltoall (received)", receive_counts, rank, ranks, output.count,
                          own < counts.size() ? counts[own] : 0);
    }
    case Collective::barrier:
    case Collective::join:
      return;
  }
}

}  // namespace fedrun
