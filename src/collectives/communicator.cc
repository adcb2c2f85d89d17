#include <fedrun/collectives/adasum.h>
#include <fedrun/collectives/check_arguments.h>
#include <fedrun/collectives/communicator.h>
#include <fedrun/collectives/equal_parts.h>
#include <fedrun/collectives/grouped.h>
#include <fedrun/collectives/hash.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fedrun {
namespace {

std::vector<std::size_t> to_vector(std::span<const std::size_t> counts) { return {counts.begin(), counts.end()}; }

Operation reducing(Collective kind, ConstBuffer input, Buffer output, const ReduceOptions& options) {
  return {.kind = kind,
          .name = std::string(options.name),
          .input = input,
          .output = output,
          .reduction = {options.op, options.weight, options.prescale, options.postscale, options.wire},
          .shape = options.shape};
}

Operation allreduce_operation(ConstBuffer input, Buffer output, const ReduceOptions& options) {
  Operation operation = reducing(Collective::allreduce, input, output, options);
  check_arguments(operation, 0, 1);
  return operation;
}

}  // namespace

std::unique_ptr<Work> Communicator::start(Operation operation) {
  check_arguments(operation, rank(), size());
  return backend_->start(std::move(operation));
}

void Communicator::allreduce(Buffer buffer, const ReduceOptions& options) { allreduce(buffer, buffer, options); }

void Communicator::allreduce(ConstBuffer input, Buffer output, const ReduceOptions& options) {
  Operation operation = allreduce_operation(input, output, options);
  if (options.op == ReduceOp::adasum) return start_adasum(*backend_, operation)->wait();
  backend_->run(std::move(operation));
}

std::unique_ptr<Work> Communicator::allreduce_async(Buffer buffer, const ReduceOptions& options) {
  return allreduce_async(buffer, buffer, options);
}

std::unique_ptr<Work> Communicator::allreduce_async(ConstBuffer input, Buffer output, const ReduceOptions& options) {
  Operation operation = allreduce_operation(input, output, options);
  if (options.op == ReduceOp::adasum) return start_adasum(*backend_, operation);
  return backend_->start(std::move(operation));
}

void Communicator::reduce_scatter(ConstBuffer input, Buffer part, const ReduceOptions& options) {
  reduce_scatter(input, part, equal_parts(input.count), options);
}

void Communicator::reduce_scatter(ConstBuffer input, Buffer part, std::span<const std::size_t> counts,
                                  const ReduceOptions& options) {
  reduce_scatter_async(input, part, counts, options)->wait();
}

std::unique_ptr<Work> Communicator::reduce_scatter_async(ConstBuffer input, Buffer part,
                                                         std::span<const std::size_t> counts,
                                                         const ReduceOptions& options) {
  Operation operation = reducing(Collective::reduce_scatter, input, part, options);
  operation.counts = to_vector(counts);
  return start(std::move(operation));
}

void Communicator::broadcast(Buffer buffer, const BroadcastOptions& options) {
  broadcast_async(buffer, options)->wait();
}

std::unique_ptr<Work> Communicator::broadcast_async(Buffer buffer, const BroadcastOptions& options) {
  Operation operation{.kind = Collective::broadcast,
                      .name = std::string(options.name),
                      .input = buffer,
                      .output = buffer,
                      .root = options.root,
                      .shape = options.shape};
  return start(std::move(operation));
}

void Communicator::allgather(ConstBuffer mine, Buffer all, std::span<const std::size_t> counts,
                             const ExchangeOptions& options) {
  allgather_async(mine, all, counts, options)->wait();
}

std::unique_ptr<Work> Communicator::allgather_async(ConstBuffer mine, Buffer all, std::span<const std::size_t> counts,
                                                    const ExchangeOptions& options) {
  Operation operation{.kind = Collective::allgather,
                      .name = std::string(options.name),
                      .input = mine,
                      .output = all,
                      .counts = to_vector(counts)};
  return start(std::move(operation));
}

void Communicator::gather(ConstBuffer mine, Buffer all, std::span<const std::size_t> counts,
                          const GatherOptions& options) {
  gather_async(mine, all, counts, options)->wait();
}

std::unique_ptr<Work> Communicator::gather_async(ConstBuffer mine, Buffer all, std::span<const std::size_t> counts,
                                                 const GatherOptions& options) {
  Operation operation{.kind = Collective::gather,
                      .name = std::string(options.name),
                      .input = mine,
                      .output = all,
                      .root = options.root,
                      .counts = to_vector(counts)};
  return start(std::move(operation));
}

void Communicator::alltoall(ConstBuffer input, std::span<const std::size_t> send_counts, Buffer output,
                            std::span<const std::size_t> receive_counts, const ExchangeOptions& options) {
  alltoall_async(input, send_counts, output, receive_counts, options)->wait();
}

std::unique_ptr<Work> Communicator::alltoall_async(ConstBuffer input, std::span<const std::size_t> send_counts,
                                                   Buffer output, std::span<const std::size_t> receive_counts,
                                                   const ExchangeOptions& options) {
  Operation operation{.kind = Collective::alltoall,
                      .name = std::string(options.name),
                      .input = input,
                      .output = output,
                      .counts = to_vector(send_counts),
                      .receive_counts = to_vector(receive_counts)};
  return start(std::move(operation));
}

void Communicator::barrier(const ExchangeOptions& options) {
  Operation operation{.kind = Collective::barrier, .name = std::string(options.name)};
  check_arguments(operation, rank(), size());
  backend_->run(std::move(operation));
}

std::unique_ptr<Work> Communicator::barrier_async(const ExchangeOptions& options) {
  return start({.kind = Collective::barrier, .name = std::string(options.name)});
}

std::unique_ptr<Work> Communicator::start_together(std::vector<Operation> operations, std::string_view name) {
  for (const Operation& operation : operations) check_arguments(operation, rank(), size());
  return start_grouped(*backend_, std::move(operations), name);
}

void Communicator::grouped_allreduce(std::span<const Buffer> buffers, const ReduceOptions& options) {
  grouped_allreduce_async(buffers, options)->wait();
}

std::unique_ptr<Work> Communicator::grouped_allreduce_async(std::span<const Buffer> buffers,
                                                            const ReduceOptions& options) {
  if (options.op == ReduceOp::adasum) {
    throw UsageError("grouped_allreduce: Adasum looks at one tensor at a time; call allreduce_async for each of them");
  }
  std::vector<Operation> operations;
  for (const Buffer& buffer : buffers) {
    operations.push_back(reducing(Collective::allreduce, buffer, buffer, options));
  }
  return start_together(std::move(operations), options.name);
}

void Communicator::grouped_allgather(std::span<const Gathered> parts, const ExchangeOptions& options) {
  grouped_allgather_async(parts, options)->wait();
}

std::unique_ptr<Work> Communicator::grouped_allgather_async(std::span<const Gathered> parts,
                                                            const ExchangeOptions& options) {
  std::vector<Operation> operations;
  for (const Gathered& part : parts) {
    operations.push_back(
        {.kind = Collective::allgather, .input = part.mine, .output = part.all, .counts = part.counts});
  }
  return start_together(std::move(operations), options.name);
}

void Communicator::grouped_reduce_scatter(std::span<const Scattered> parts, const ReduceOptions& options) {
  grouped_reduce_scatter_async(parts, options)->wait();
}

std::unique_ptr<Work> Communicator::grouped_reduce_scatter_async(std::span<const Scattered> parts,
                                                                 const ReduceOptions& options) {
  std::vector<Operation> operations;
  for (const Scattered& part : parts) {
    Operation& operation =
        operations.emplace_back(reducing(Collective::reduce_scatter, part.input, part.part, options));
    operation.counts = part.counts.empty() ? equal_parts(part.input.count) : part.counts;
  }
  return start_together(std::move(operations), options.name);
}

int Communicator::join() {
  std::int32_t last = 0;
  backend_->run({.kind = Collective::join, .output = {&last, 1, DataType::i32}});
  return last;
}

Communicator Communicator::split(const SplitOptions& options) {
  if (options.color && *options.color < 0) {
    throw UsageError(fmt::format("split: color {} must not be negative", *options.color));
  }
  auto backend = backend_->split(options.color, options.key);
  if (!backend) throw UsageError("split: this rank gave no color, so it is in no group; use group() for subsets");
  return Communicator(std::move(backend));
}

std::optional<Communicator> Communicator::group(std::span<const int> ranks) {
  std::vector<bool> seen(static_cast<std::size_t>(size()));
  for (const int member : ranks) {
    if (member < 0 || member >= size()) {
      throw UsageError(fmt::format("group: {} is not a rank of this group; it has ranks 0 to {}", member, size() - 1));
    }
    if (seen[static_cast<std::size_t>(member)]) throw UsageError(fmt::format("group: rank {} appears twice", member));
    seen[static_cast<std::size_t>(member)] = true;
  }
  std::uint64_t list = ranks.size();
  for (const int member : ranks) list = hash_of(list, static_cast<std::uint64_t>(member));
  const std::vector<std::size_t> lists = gather_counts(list);
  const auto other = std::ranges::find_if(lists, [&](std::size_t theirs) { return theirs != lists.front(); });
  if (other != lists.end()) {
    throw MismatchError(fmt::format("group: ranks 0 and {} give different lists of ranks; rank {} gives [{}]",
                                    other - lists.begin(), rank(), fmt::join(ranks, ", ")));
  }
  const auto mine = std::ranges::find(ranks, rank());
  if (mine == ranks.end()) {
    backend_->split(std::nullopt, 0);
    return std::nullopt;
  }
  return Communicator(backend_->split(0, static_cast<int>(mine - ranks.begin())));
}

Memory Communicator::allocate(std::size_t bytes, Device device) { return backend_->allocate(bytes, device); }

std::vector<std::size_t> Communicator::equal_parts(std::size_t count) const {
  return fedrun::equal_parts(count, static_cast<std::size_t>(size()));
}

std::vector<std::size_t> Communicator::gather_counts(std::size_t mine) {
  const auto count = static_cast<std::int64_t>(mine);
  std::vector<std::int64_t> all(static_cast<std::size_t>(size()));
  allgather({&count, 1, DataType::i64}, as_buffer(all), std::vector<std::size_t>(all.size(), 1));
  return {all.begin(), all.end()};
}

}  // namespace fedrun
