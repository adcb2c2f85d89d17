#include <fedrun/collectives/nccl_call.h>
#include <fedrun/collectives/nccl_run.h>

#include <algorithm>
#include <utility>

namespace fedrun {
std::size_t equal_part(const std::vector<std::size_t>& counts) {
  const std::size_t equal = counts.front();
  const bool is_equal =
      std::all_of(counts.begin(), counts.end() - 1, [&](std::size_t count) { return count == equal; });
  return is_equal && counts.back() >= equal ? equal : 0;
}

NcclRun::NcclRun(std::shared_ptr<NcclGroup> group, ConstBuffer input, Buffer output)
    : group_(std::move(group)), input_(input), output_(output) {
  ready_.record(static_cast<cudaStream_t>(input.stream));
}

NcclRun::~NcclRun() {
  destroy_operator();
  if (is_launching()) group_->set_launching(false);
  // The scratch memory is freed in the order of the group's stream, and a copy to or from it may be under way.
  if (copied_) static_cast<void>(cudaStreamWaitEvent(stream(), copied_->get(), 0));
}

void NcclRun::launch(const DeviceTerms& terms) {
  group_->use_gpu();
  if (input_) ready_.let_wait(stream());
  shards_ = terms.shards;
  shard_memory_ = terms.shard_memory;
  if (is_sharded()) group_->make_copy_streams();
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
  if (is_launching()) {
    if (!is_settled) return Progress::none;
    group_->use_gpu();
    destroy_operator();
    group_->set_launching(false);
    if (is_sharded() && state_ == State::launching) {
      copy_shard_to_host();
      return Progress::some;
    }
    scale_result();
    done_.record(stream());
    state_ = State::on_stream;
    return Progress::some;
  }
  return progress(state_ == State::on_stream && done_.has_happened(), false);
}

void NcclRun::let_wait(void* stream) {
  group_->use_gpu();
  done_.let_wait(static_cast<cudaStream_t>(stream));
}

void NcclRun::broadcast(const DeviceTerms& terms) {
  if (terms.count == 0) return;
  NcclCallGroup calls;
  check_nccl(ncclBroadcast(input_->data, output_.data, terms.count, nccl_type(terms.type), terms.root, communicator(),
                           stream()),
             "ncclBroadcast", communicator());
  calls.end(communicator());
}

void NcclRun::allgather(const DeviceTerms& terms) {
  if (output_.count != 0) gather_parts(input_->data, terms.counts, output_.data, terms.type);
}

// NCCL gathers equal parts only; what the last has more, and uneven parts, are a broadcast from each rank.
void NcclRun::gather_parts(const void* part, const std::vector<std::size_t>& counts, void* all, DataType type) {
  NcclCallGroup calls;
  const std::size_t equal = equal_part(counts);
  if (equal != 0) {
    check_nccl(ncclAllGather(part, all, equal, nccl_type(type), communicator(), stream()), "ncclAllGather",
               communicator());
  }
  std::size_t first = equal * counts.size();
  for (int root = 0; root < group_->ranks(); ++root) {
    const std::size_t count = counts[static_cast<std::size_t>(root)] - equal;
    void* const to = at(all, first, type);
    if (count != 0) {
      check_nccl(ncclBroadcast(root == group_->rank() ? at(part, equal, type) : to, to, count, nccl_type(type), root,
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
