// The part of NcclRun that reduces: what comes before NCCL's sum, and after it.
#include <fedrun/collectives/device_kernels.h>
#include <fedrun/collectives/nccl_call.h>
#include <fedrun/collectives/nccl_run.h>

#include <algorithm>
#include <cstring>

namespace fedrun {

void* NcclRun::scratch(CudaScratch& owner, std::size_t count) const {
  owner = group_->scratch(count * size_of(reduction_->type));
  return owner.get();
}

void NcclRun::reduce(const DeviceTerms& terms) {
  reduction_ = plan_device_reduction(terms, terms.rank, terms.ranks);
  const bool is_scatter = terms.kind == Collective::reduce_scatter;
  count_ = terms.count;
  result_count_ = is_scatter ? terms.counts[static_cast<std::size_t>(group_->rank())] : count_;
  if (reduction_->is_empty || count_ == 0) return;
  bring_elements();
  if (input_ && !reduction_->uses_scratch && (reduction_->type == output_.type || output_.type == DataType::boolean)) {
    reduced_ = output_.data;
  } else {
    reduced_ = is_scatter ? scratch(result_scratch_, result_count_) : input_scratch_.get();
  }
  make_operator();
  NcclCallGroup calls;
  if (is_sharded()) {
    reduce_parts(shards_, scratch(shard_scratch_, own_shard()));
  } else if (is_scatter) {
    reduce_parts(terms.counts, reduced_);
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
    if (reduction_->before == 1 && !reduction_->uses_scratch) return;
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

// NCCL scatters in equal parts only; what the last has more, and uneven parts, are reductions to one rank each.
void NcclRun::reduce_parts(const std::vector<std::size_t>& counts, void* part) {
  const DataType type = reduction_->type;
  const ncclRedOp_t op = operator_.value_or(nccl_op(reduction_->op));
  const std::size_t equal = equal_part(counts);
  if (equal != 0) {
    check_nccl(ncclReduceScatter(brought_, part, equal, nccl_type(type), op, communicator(), stream()),
               "ncclReduceScatter", communicator());
  }
  std::size_t first = equal * counts.size();
  for (int root = 0; root < group_->ranks(); ++root) {
    const std::size_t count = counts[static_cast<std::size_t>(root)] - equal;
    if (count != 0) {
      void* const rest = root == group_->rank() ? at(part, equal, type) : part;  // NCCL writes at the root only
      check_nccl(
          ncclReduce(at(brought_, first, type), rest, count, nccl_type(type), op, root, communicator(), stream()),
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
  const DataType type = output_.type == DataType::boolean ? reduction_->type : output_.type;
  copy_on_device({&piece, 1}, {reduction_->type, type, reduction_->factor, reduction_->divisor}, stream());
}

void NcclRun::copy_shard_to_host() {
  if (shard_memory_ != nullptr && shard_scratch_.get() != nullptr) {
    done_.record(stream());
    done_.let_wait(group_->stream_to_host());
    copy_shard(shard_memory_, shard_scratch_.get(), group_->stream_to_host());
  }
  state_ = State::coming_to_host;
}

void NcclRun::copy_shard(void* to, const void* from, cudaStream_t copy_stream) {
  if (!copied_) copied_.emplace();
  check_cuda(cudaMemcpyAsync(to, from, own_shard() * size_of(reduction_->type), cudaMemcpyDefault, copy_stream),
             "cudaMemcpyAsync");
  try {
    copied_->record(copy_stream);
  } catch (const Error&) {
    static_cast<void>(cudaStreamSynchronize(copy_stream));  // nothing else would tell when the scratch may go
    throw;
  }
}

bool NcclRun::is_in_host_memory() { return state_ == State::coming_to_host && (!copied_ || copied_->has_happened()); }

void NcclRun::go_back() {
  group_->use_gpu();
  state_ = State::launching_return;
  group_->set_launching(true);
  if (reduction_->is_empty || count_ == 0) return;
  if (copied_) {
    copy_shard(shard_scratch_.get(), shard_memory_, group_->stream_from_host());
    copied_->let_wait(stream());
  }
  gather_parts(shard_scratch_.get(), shards_, reduced_, reduction_->type);
}

}  // namespace fedrun
