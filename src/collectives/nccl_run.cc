#include <fedrun/collectives/device_kernels.h>
#include <fedrun/collectives/nccl_call.h>
#include <fedrun/collectives/nccl_run.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace fedrun {
namespace {

const std::byte* at(const void* data, std::size_t element, DataType type) {
  return static_cast<const std::byte*>(data) + element * size_of(type);
}
std::byte* at(void* data, std::size_t element, DataType type) {
  return static_cast<std::byte*>(data) + element * size_of(type);
}

bool are_equal(const std::vector<std::size_t>& counts) {
  return std::ranges::all_of(counts, [&](std::size_t count) { return count == counts.front(); });
}

}  // namespace

NcclRun::NcclRun(std::shared_ptr<NcclGroup> group, ConstBuffer input, Buffer output)
    : group_(std::move(group)), input_(input), output_(output) {
  ready_.record(static_cast<cudaStream_t>(input.stream));
}

NcclRun::~NcclRun() {
  destroy_operator();
  if (state_ == State::launching) group_->set_launching(false);
}

void NcclRun::launch(const DeviceTerms& terms) {
  group_->use_gpu();
  if (input_) ready_.let_wait(stream());
  state_ = State::launching;
  group_->set_launching(true);
  switch (terms.kind) {
    case Collective::allreduce:
    case Collective::reduce_scatter:
      return reduce(terms);
    case Collective::broadcast:
      return broadcast(terms);
    case Collective::allgather:
      return allgather(terms);
    case Collective::gather:
      return gather(terms);
    case Collective::alltoall:
      return alltoall(terms);
    case Collective::barrier:
    case Collective::join:
      return;
  }
}

Run::Progress NcclRun::advance() {
  // Asked in every state: what fails on the device, or on another rank, shows here.
  const bool is_settled = group_->communicator().is_settled();
  if (state_ == State::launching) {
    if (!is_settled) return Progress::none;
    group_->use_gpu();
    destroy_operator();
    scale_result();
    done_.record(stream());
    state_ = State::on_stream;
    group_->set_launching(false);
    return Progress::some;
  }
  return progress(done_.has_happened(), false);
}

void NcclRun::let_wait(void* stream) {
  group_->use_gpu();
  done_.let_wait(static_cast<cudaStream_t>(stream));
}

void* NcclRun::scratch(CudaScratch& owner, std::size_t count) const {
  owner = CudaScratch(count * size_of(reduction_->type), stream());
  return owner.get();
}

void NcclRun::reduce(const DeviceTerms& terms) {
  reduction_ = plan_device_reduction(terms, group_->rank(), group_->ranks());
  const bool is_scatter = terms.kind == Collective::reduce_scatter;
  count_ = terms.count;
  result_count_ = is_scatter ? terms.counts[static_cast<std::size_t>(group_->rank())] : count_;
  if (reduction_->is_empty || count_ == 0) return;
  bring_elements();
  if (input_ && (reduction_->type == output_.type || output_.type == DataType::boolean)) {
    reduced_ = output_.data;
  } else {
    reduced_ = is_scatter ? scratch(result_scratch_, result_count_) : input_scratch_.get();
  }
  make_operator();
  NcclCallGroup calls;
  if (is_scatter) {
    reduce_parts(terms);
  } else {
    const ncclRedOp_t op = operator_.value_or(nccl_op(reduction_->op));
    check_nccl(ncclAllReduce(brought_, reduced_, count_, nccl_type(reduction_->type), op, communicator(), stream()),
               "ncclAllReduce", communicator());
  }
  calls.end(communicator());
}

// The input itself, if NCCL can read it as it is.
void NcclRun::bring_elements() {
  const DataType type = reduction_->type;
  if (!input_ || !reduction_->takes_part) {
    void* const neutral = scratch(input_scratch_, count_);
    fill_on_device({.data = neutral, .count = count_, .type = type}, neutral_bits(reduction_->op, type), stream());
    brought_ = neutral;
  } else if (type == input_->type || input_->type == DataType::boolean) {
    brought_ = input_->data;
    if (reduction_->before == 1) return;
    void* const scaled = scratch(input_scratch_, count_);
    const CopyPiece piece{input_->data, scaled, count_};
    copy_on_device({&piece, 1}, {type, type, reduction_->before}, stream());
    brought_ = scaled;
  } else {
    void* const cast = scratch(input_scratch_, count_);
    const CopyPiece piece{input_->data, cast, count_};
    copy_on_device({&piece, 1}, {input_->type, type, reduction_->before}, stream());
    brought_ = cast;
  }
}

void NcclRun::make_operator() {
  if (!reduction_->multiplier) return;
  std::uint64_t scalar = 0;
  dispatch_element_type(reduction_->type, [&](auto* pointer) {
    const auto element = narrow<std::remove_pointer_t<decltype(pointer)>>(*reduction_->multiplier);
    std::memcpy(&scalar, &element, sizeof element);
  });
  ncclRedOp_t made{};
  check_nccl(
      ncclRedOpCreatePreMulSum(&made, &scalar, nccl_type(reduction_->type), ncclScalarHostImmediate, communicator()),
      "ncclRedOpCreatePreMulSum", communicator());
  operator_ = made;
}

void NcclRun::destroy_operator() noexcept {
  if (operator_ && !group_->communicator().is_aborted())
    static_cast<void>(ncclRedOpDestroy(*operator_, communicator()));
  operator_.reset();
}

// NCCL scatters in equal parts only; uneven ones are reductions to one rank each.
void NcclRun::reduce_parts(const DeviceTerms& terms) {
  const DataType type = reduction_->type;
  const ncclRedOp_t op = operator_.value_or(nccl_op(reduction_->op));
  if (are_equal(terms.counts)) {
    return check_nccl(
        ncclReduceScatter(brought_, reduced_, result_count_, nccl_type(type), op, communicator(), stream()),
        "ncclReduceScatter", communicator());
  }
  std::size_t first = 0;
  for (int root = 0; root < group_->ranks(); ++root) {
    const std::size_t count = terms.counts[static_cast<std::size_t>(root)];
    if (count != 0) {
      check_nccl(
          ncclReduce(at(brought_, first, type), reduced_, count, nccl_type(type), op, root, communicator(), stream()),
          "ncclReduce", communicator());
    }
    first += count;
  }
}

// After NCCL has put the sum on the stream.
void NcclRun::scale_result() {
  if (!reduction_ || !input_ || result_count_ == 0) return;
  if (reduction_->is_empty) {
    check_cuda(cudaMemsetAsync(output_.data, 0, output_.bytes(), stream()), "cudaMemsetAsync");
    return;
  }
  const bool is_in_place = reduced_ == output_.data;
  if (is_in_place && reduction_->factor == 1 && reduction_->divisor == 1) return;
  const CopyPiece piece{reduced_, output_.data, result_count_};
  copy_on_device({&piece, 1}, {reduction_->type, output_.type, reduction_->factor, reduction_->divisor}, stream());
}

void NcclRun::broadcast(const DeviceTerms& terms) {
  if (terms.count == 0) return;
  NcclCallGroup calls;
  check_nccl(ncclBroadcast(input_->data, output_.data, terms.count, nccl_type(terms.type), terms.root, communicator(),
                           stream()),
             "ncclBroadcast", communicator());
  calls.end(communicator());
}

// NCCL gathers equal parts only; uneven ones are a broadcast from each rank.
void NcclRun::allgather(const DeviceTerms& terms) {
  if (output_.count == 0) return;
  NcclCallGroup calls;
  if (are_equal(terms.counts)) {
    check_nccl(
        ncclAllGather(input_->data, output_.data, input_->count, nccl_type(terms.type), communicator(), stream()),
        "ncclAllGather", communicator());
    return calls.end(communicator());
  }
  std::size_t first = 0;
  for (int root = 0; root < group_->ranks(); ++root) {
    const std::size_t count = terms.counts[static_cast<std::size_t>(root)];
    void* const part = at(output_.data, first, terms.type);
    if (count != 0) {
      check_nccl(ncclBroadcast(root == group_->rank() ? input_->data : part, part, count, nccl_type(terms.type), root,
                               communicator(), stream()),
                 "ncclBroadcast", communicator());
    }
    first += count;
  }
  calls.end(communicator());
}

void NcclRun::gather(const DeviceTerms& terms) {
  const ncclDataType_t type = nccl_type(terms.type);
  NcclCallGroup calls;
  if (input_->count != 0) {
    check_nccl(ncclSend(input_->data, input_->count, type, terms.root, communicator(), stream()), "ncclSend",
               communicator());
  }
  std::size_t first = 0;
  for (int from = 0; from < group_->ranks() && group_->rank() == terms.root; ++from) {
    const std::size_t count = terms.counts[static_cast<std::size_t>(from)];
    if (count != 0) {
      check_nccl(ncclRecv(at(output_.data, first, terms.type), count, type, from, communicator(), stream()), "ncclRecv",
                 communicator());
    }
    first += count;
  }
  calls.end(communicator());
}

void NcclRun::alltoall(const DeviceTerms& terms) {
  const ncclDataType_t type = nccl_type(terms.type);
  NcclCallGroup calls;
  std::size_t first_sent = 0;
  std::size_t first_received = 0;
  for (int other = 0; other < group_->ranks(); ++other) {
    const std::size_t sent = terms.counts[static_cast<std::size_t>(other)];
    const std::size_t received = terms.receive_counts[static_cast<std::size_t>(other)];
    if (sent != 0) {
      check_nccl(ncclSend(at(input_->data, first_sent, terms.type), sent, type, other, communicator(), stream()),
                 "ncclSend", communicator());
    }
    if (received != 0) {
      check_nccl(
          ncclRecv(at(output_.data, first_received, terms.type), received, type, other, communicator(), stream()),
          "ncclRecv", communicator());
    }
    first_sent += sent;
    first_received += received;
  }
  calls.end(communicator());
}

}  // namespace fedrun
