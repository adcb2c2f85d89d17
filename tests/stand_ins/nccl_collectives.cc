// NCCL's collectives, sends, receives and groups of them.
#include <string>
#include <utility>
#include <vector>

#include "stand_ins/nccl_errors.h"
#include "stand_ins/nccl_operation.h"
#include "stand_ins/stand_in_control.h"

namespace stand_in {

namespace {

thread_local int group_depth = 0;
thread_local std::vector<Call> group_calls;

// Carried out later: the communicator is in progress until then.
ncclResult_t end_group() {
  std::vector<Call> calls = std::move(group_calls);
  group_calls.clear();
  if (calls.empty()) return ncclSuccess;
  ncclComm& communicator = *calls.front().communicator;
  communicator.looks_left = looks_until_done;
  communicator.pending.push_back([calls = std::move(calls)] {
    std::vector<Call> messages;
    for (const Call& call : calls) {
      call.kind == send_receive ? messages.push_back(call) : put_on_stream({call});
    }
    if (!messages.empty()) put_on_stream(messages);
  });
  return ncclInProgress;
}

ncclResult_t enqueue(const char* function, Call call, ncclComm_t handle) {
  if (control().shall_fail(function)) return failure(function);
  call.communicator = shared(handle);
  report_if_launching(*call.communicator, function);
  group_calls.push_back(std::move(call));
  return group_depth == 0 ? end_group() : ncclSuccess;
}

}  // namespace

}  // namespace stand_in

using namespace stand_in;

extern "C" {

ncclResult_t ncclGroupStart() {
  if (control().shall_fail("ncclGroupStart")) return failure("ncclGroupStart");
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--group_depth > 0) return ncclSuccess;
  if (control().shall_fail("ncclGroupEnd")) {
    group_calls.clear();
    return failure("ncclGroupEnd");
  }
  return end_group();
}

ncclResult_t ncclAllReduce(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclAllReduce", {all_reduce, input, count, output, count, type, op, 0, {}, stream}, comm);
}

ncclResult_t ncclReduce(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclReduce", {reduce, input, count, output, count, type, op, root, {}, stream}, comm);
}

ncclResult_t ncclReduceScatter(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  const auto ranks = static_cast<std::size_t>(shared(comm)->ranks);
  return enqueue("ncclReduceScatter", {reduce_scatter, input, count * ranks, output, count, type, op, 0, {}, stream},
                 comm);
}

ncclResult_t ncclBroadcast(const void* input, void* output, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclBroadcast", {broadcast, input, count, output, count, type, 0, root, {}, stream}, comm);
}

ncclResult_t ncclAllGather(const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const auto ranks = static_cast<std::size_t>(shared(comm)->ranks);
  return enqueue("ncclAllGather", {all_gather, input, count, output, count * ranks, type, 0, 0, {}, stream}, comm);
}

ncclResult_t ncclSend(const void* input, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return enqueue("ncclSend", {send_receive, input, count, nullptr, 0, type, 0, peer, {}, stream}, comm);
}

ncclResult_t ncclRecv(void* output, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclRecv", {send_receive, nullptr, 0, output, count, type, 0, peer, {}, stream}, comm);
}

}  // extern "C"
