// A group of ranks that compute together; the one class through which everything else communicates.
#pragma once

#include <fedrun/collectives/backend.h>
#include <fedrun/collectives/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fedrun {

// Every operation may have a name. Ranks may submit named operations in different orders: they are matched by name,
// the others by their order. A name must not be used again before its operation has finished.
struct ReduceOptions {
  ReduceOp op = ReduceOp::average;
  // What this rank counts for in a sum or an average, such as its number of samples. Either every rank gives one or
  // none does. The average divides by the sum of the weights and is 0 where that is 0. A rank of weight 0 is left out.
  std::optional<double> weight{};
  double prescale = 1;   // each element is multiplied by it before the reduction,
  double postscale = 1;  // and each result afterwards
  // f16 or bf16 for f32 elements: half the bytes between hosts. Inside a host nothing travels, and nothing is rounded.
  std::optional<DataType> wire{};
  std::string_view name{};
  std::uint64_t shape = 0;  // not 0: a hash of the shape that the elements form; it must agree as well as their number
};
using AllreduceOptions = ReduceOptions;

struct BroadcastOptions {
  int root = 0;
  std::string_view name{};
  std::uint64_t shape = 0;  // as in ReduceOptions
};

struct GatherOptions {
  int root = 0;
  std::string_view name{};
};

struct ExchangeOptions {  // of allgather, alltoall and barrier
  std::string_view name{};
};

struct SplitOptions {
  std::optional<int> color = 0;  // ranks with the same color form a group; none: this rank joins no group
  int key = 0;                   // order inside the group; ties go by rank
};

// Every member is collective: all ranks of the group call it, with arguments that agree. One thread at a time. Wrong
// arguments throw UsageError before anything is sent; arguments that disagree throw MismatchError on every rank, and
// the group can be used afterwards.
//
// The _async forms return at once; the buffers are the operation's until its Work is done. They progress while this
// rank waits for, or polls, anything.
class Communicator {
 public:
  explicit Communicator(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}

  int rank() const { return backend_->rank(); }
  int size() const { return backend_->size(); }
  std::string_view backend_name() const { return backend_->name(); }
  // The index of the GPU, on this host, whose elements this rank brings to the group; none: it uses no GPUs.
  std::optional<int> gpu() const { return backend_->gpu(); }

  // In place, or from one buffer into another that does not overlap it.
  void allreduce(Buffer buffer, const ReduceOptions& options = {});
  void allreduce(ConstBuffer input, Buffer output, const ReduceOptions& options = {});
  std::unique_ptr<Work> allreduce_async(Buffer buffer, const ReduceOptions& options = {});
  std::unique_ptr<Work> allreduce_async(ConstBuffer input, Buffer output, const ReduceOptions& options = {});

  // Rank r gets the r-th part of the reduced input: counts[r] elements, or equal parts, of which the first
  // `count % size` have one element more.
  void reduce_scatter(ConstBuffer input, Buffer part, const ReduceOptions& options = {});
  void reduce_scatter(ConstBuffer input, Buffer part, std::span<const std::size_t> counts,
                      const ReduceOptions& options = {});
  std::unique_ptr<Work> reduce_scatter_async(ConstBuffer input, Buffer part, std::span<const std::size_t> counts,
                                             const ReduceOptions& options = {});

  void broadcast(Buffer buffer, const BroadcastOptions& options = {});
  std::unique_ptr<Work> broadcast_async(Buffer buffer, const BroadcastOptions& options = {});

  // Each rank may bring a different number of elements; `all` receives them in rank order.
  void allgather(ConstBuffer mine, Buffer all, std::span<const std::size_t> counts,
                 const ExchangeOptions& options = {});
  std::unique_ptr<Work> allgather_async(ConstBuffer mine, Buffer all, std::span<const std::size_t> counts,
                                        const ExchangeOptions& options = {});

  // The same for one rank, the root; `all` is empty elsewhere.
  void gather(ConstBuffer mine, Buffer all, std::span<const std::size_t> counts, const GatherOptions& options = {});
  std::unique_ptr<Work> gather_async(ConstBuffer mine, Buffer all, std::span<const std::size_t> counts,
                                     const GatherOptions& options = {});

  // The first send_counts[0] elements of the input go to rank 0, the next send_counts[1] to rank 1, …; what arrives
  // lies in rank order in the output.
  void alltoall(ConstBuffer input, std::span<const std::size_t> send_counts, Buffer output,
                std::span<const std::size_t> receive_counts, const ExchangeOptions& options = {});
  std::unique_ptr<Work> alltoall_async(ConstBuffer input, std::span<const std::size_t> send_counts, Buffer output,
                                       std::span<const std::size_t> receive_counts,
                                       const ExchangeOptions& options = {});

  void barrier(const ExchangeOptions& options = {});
  std::unique_ptr<Work> barrier_async(const ExchangeOptions& options = {});

  // Several at once: all of them succeed, or none does. None starts before all ranks have submitted the whole group.
  std::unique_ptr<Work> grouped_allreduce_async(std::span<const Buffer> buffers, const ReduceOptions& options = {});
  void grouped_allreduce(std::span<const Buffer> buffers, const ReduceOptions& options = {});
  struct Gathered {
    ConstBuffer mine;
    Buffer all;
    std::vector<std::size_t> counts;
  };
  std::unique_ptr<Work> grouped_allgather_async(std::span<const Gathered> parts, const ExchangeOptions& options = {});
  void grouped_allgather(std::span<const Gathered> parts, const ExchangeOptions& options = {});
  struct Scattered {
    ConstBuffer input;
    Buffer part;
    std::vector<std::size_t> counts;  // empty: equal parts
  };
  std::unique_ptr<Work> grouped_reduce_scatter_async(std::span<const Scattered> parts,
                                                     const ReduceOptions& options = {});
  void grouped_reduce_scatter(std::span<const Scattered> parts, const ReduceOptions& options = {});

  // Says that this rank has run out of data: until every rank has said so, it answers the others' reductions, counting
  // for nothing in them. Returns the rank that joined last. Anything but a reduction is an error meanwhile.
  int join();

  // Every rank with a color ends up in exactly one of the new groups; throws UsageError on a rank without.
  Communicator split(const SplitOptions& options);
  // The group of these ranks, in this order. Collective over this group: all give the same list. Nothing for ranks that
  // are not on it.
  std::optional<Communicator> group(std::span<const int> ranks);

  // Memory that this group, and every group made from it, reduces without copying it; zeroed. That of a GPU is
  // registered with NCCL for this group.
  Memory allocate(std::size_t bytes, Device device = Device::cpu);

  // The same number on every rank, and another one each time: for the names of what is built on this group.
  std::uint64_t next_number() { return next_number_++; }

  // How many elements each rank gets where `count` are dealt out evenly.
  std::vector<std::size_t> equal_parts(std::size_t count) const;
  // Tells every rank how many elements each of them has.
  std::vector<std::size_t> gather_counts(std::size_t mine);

  // The same for vectors, arrays and spans.
  template <ElementRange R>
  void allreduce(R&& elements, const ReduceOptions& options = {}) {
    allreduce(as_buffer(elements), options);
  }
  template <ElementRange R>
  std::unique_ptr<Work> allreduce_async(R&& elements, const ReduceOptions& options = {}) {
    return allreduce_async(as_buffer(elements), options);
  }
  template <ElementRange R>
  void broadcast(R&& elements, const BroadcastOptions& options = {}) {
    broadcast(as_buffer(elements), options);
  }
  // Gathers what each rank brings, in rank order, after the ranks have told each other how much that is.
  template <ElementRange R>
  auto allgather(R&& mine) {
    using Value = std::ranges::range_value_t<R>;
    const std::vector<std::size_t> counts = gather_counts(std::ranges::size(mine));
    std::size_t total = 0;
    for (const std::size_t count : counts) total += count;
    const auto all = std::make_unique<Value[]>(total);  // not a vector: vector<bool> has no elements to point at
    allgather(as_const_buffer(mine), as_buffer(std::span<Value>(all.get(), total)), counts);
    std::vector<std::vector<Value>> by_rank;
    const Value* next = all.get();
    for (const std::size_t count : counts) {
      by_rank.emplace_back(next, next + count);
      next += count;
    }
    return by_rank;
  }

 private:
  std::unique_ptr<Work> start(Operation operation);
  std::unique_ptr<Work> start_together(std::vector<Operation> operations, std::string_view name);

  std::unique_ptr<Backend> backend_;
  std::uint64_t next_number_ = 0;
};

}  // namespace fedrun
