// NCCL's functions about communicators, but for ncclCommSplit.
#include "stand_ins/nccl_communicator.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "stand_ins/nccl_errors.h"
#include "stand_ins/stand_in_control.h"

namespace stand_in {

namespace {

std::map<ncclComm_t, Shared>& communicators() {
  static auto* all = new std::map<ncclComm_t, Shared>;
  return *all;
}

// As the real one does: a communicator has at most one rank on a GPU.
void refuse_shared_gpus(ncclComm& communicator) {
  const auto& gpus = communicator.segment->gpus;
  for (int rank = 0; rank < communicator.ranks; ++rank) {
    if (rank == communicator.rank || gpus[static_cast<std::size_t>(rank)] != communicator.gpu) continue;
    set_last_error("Duplicate GPU detected : rank " + std::to_string(communicator.rank) + " and rank " +
                   std::to_string(rank) + " both on CUDA device " + std::to_string(communicator.gpu));
    communicator.failure = ncclInvalidUsage;
  }
}

bool join(ncclComm& communicator) {
  if (!communicator.has_joined && control().shall_fail("absent")) communicator.is_absent = true;
  if (communicator.is_absent) return false;
  if (!communicator.has_joined) {
    communicator.segment = Segment::open(communicator.handle);
    if (communicator.segment == nullptr) {
      communicator.failure = ncclSystemError;
      return false;
    }
    communicator.segment->gpus[static_cast<std::size_t>(communicator.rank)] = communicator.gpu;
    communicator.segment->joined.fetch_add(1);
    communicator.has_joined = true;
  }
  if (communicator.segment->joined.load() < communicator.ranks) return false;
  refuse_shared_gpus(communicator);
  return communicator.failure == ncclSuccess;
}

ncclResult_t state_of(ncclComm& communicator) {
  if (communicator.failure != ncclSuccess) return communicator.failure;
  if (communicator.is_finalizing) {
    if (communicator.tasks.load() != 0) return ncclInProgress;
    if (!std::exchange(communicator.has_finalized, true)) communicator.segment->finalized.fetch_add(1);
    return communicator.segment->finalized.load() >= communicator.ranks ? ncclSuccess : ncclInProgress;
  }
  if (!join(communicator)) return communicator.failure != ncclSuccess ? communicator.failure : ncclInProgress;
  if (communicator.unfinished) {
    if (!communicator.unfinished()) return ncclInProgress;
    communicator.unfinished = {};
  }
  if (communicator.looks_left != 0 && --communicator.looks_left != 0) return ncclInProgress;
  for (const auto& call : std::exchange(communicator.pending, {})) call();
  return ncclSuccess;
}

}  // namespace

Shared shared(ncclComm_t handle) {
  const auto found = communicators().find(handle);
  if (found == communicators().end()) {
    control().report("a call on a communicator that does not exist (any more)");
    std::abort();
  }
  return found->second;
}

void report_if_launching(const ncclComm& communicator, const char* function) {
  if ((communicator.looks_left == 0 && !communicator.unfinished) || communicator.failure != ncclSuccess) return;
  control().report(std::string(function) + " while the communicator is in progress");
}

void remember(const Shared& made) {
  communicators()[made.get()] = made;
  control().add("communicator", 1);
}

void forget(ncclComm_t handle) {
  communicators().erase(handle);
  control().add("communicator", -1);
}

}  // namespace stand_in

using namespace stand_in;

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (control().shall_fail("ncclGetUniqueId")) return failure("ncclGetUniqueId");
  const SegmentHandle handle = Segment::make();
  std::memset(id, 0, sizeof *id);
  std::memcpy(id, &handle, sizeof handle);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* handle, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) control().report("ncclCommInitRankConfig of a communicator that blocks");
  if (control().shall_fail("ncclCommInitRankConfig")) return failure("ncclCommInitRankConfig");
  auto made = std::make_shared<ncclComm>();
  made->rank = rank;
  made->ranks = ranks;
  std::memcpy(&made->handle, &id, sizeof made->handle);
  made->looks_left = looks_until_done;
  *handle = made.get();
  remember(made);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* state) {
  if (control().shall_fail("ncclCommGetAsyncError")) return failure("ncclCommGetAsyncError");
  if (control().shall_fail("async")) {
    set_last_error("a peer is gone, says the stand-in");
    shared(handle)->failure = ncclRemoteError;
  }
  *state = state_of(*shared(handle));
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  if (control().shall_fail("ncclCommFinalize")) return failure("ncclCommFinalize");
  shared(handle)->is_finalizing = true;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  if (!shared(handle)->has_finalized) control().report("ncclCommDestroy before ncclCommFinalize");
  if (!shared(handle)->registered.empty()) control().report("ncclCommDestroy before ncclCommDeregister");
  forget(handle);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const Shared communicator = shared(handle);
  if (control().shall_fail("slow abort")) std::this_thread::sleep_for(std::chrono::seconds(4));
  communicator->is_aborted.store(true);
  for (const PreMultiplier& multiplier : communicator->operators) {
    if (multiplier.is_alive) control().add("operator", -1);
  }
  control().add("registration", -static_cast<int>(communicator->registered.size()));
  forget(handle);
  return ncclSuccess;
}

}  // extern "C"
