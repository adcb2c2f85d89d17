// A communicator of the stand-in for NCCL. It never blocks, as fedrun asks: what is called is carried out some looks at
// ncclCommGetAsyncError later, so that a program that does not look is found out.
#pragma once

#include <nccl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "stand_ins/nccl_segment.h"
#include "stand_ins/stand_in_device.h"

namespace stand_in {

inline constexpr int looks_until_done = 2;

struct PreMultiplier {
  ncclDataType_t type;
  std::uint64_t scalar;
  bool is_alive;
};

}  // namespace stand_in

struct ncclComm {
  int rank = 0;
  int ranks = 1;
  int gpu = stand_in::current_gpu();
  stand_in::SegmentHandle handle{0, -1};
  stand_in::Segment* segment = nullptr;
  bool has_joined = false;
  bool is_absent = false;  // never joins, as if the others could not be reached
  bool is_finalizing = false;
  bool has_finalized = false;
  std::atomic<bool> is_aborted{false};
  std::atomic<int> tasks{0};
  std::uint64_t splits = 0;
  int looks_left = 0;
  std::vector<std::function<void()>> pending{};  // calls to carry out
  std::function<bool()> unfinished{};            // a split: true once it is through
  std::vector<stand_in::PreMultiplier> operators{};
  std::map<const std::byte*, std::size_t> registered{};  // bytes by the first of them
  ncclResult_t failure = ncclSuccess;

  ~ncclComm() {
    if (segment != nullptr) ::munmap(segment, sizeof(stand_in::Segment));
    if (handle.pid == ::getpid() && handle.descriptor >= 0) ::close(static_cast<int>(handle.descriptor));
  }
};

namespace stand_in {

// The program's handle of a communicator, which a task on a stream may outlive.
using Shared = std::shared_ptr<ncclComm>;

Shared shared(ncclComm_t handle);  // must exist
void report_if_launching(const ncclComm& communicator, const char* function);
void remember(const Shared& made);
void forget(ncclComm_t handle);

}  // namespace stand_in
