// Turns what NCCL returns into errors that say which call it was and what NCCL says about it.
#pragma once

#include <fedrun/collectives/nccl_2_18.h>
#include <fedrun/collectives/types.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace fedrun {

[[noreturn]] inline void throw_nccl_error(ncclResult_t result, std::string_view call, ncclComm_t communicator) {
  const std::string text =
      fmt::format("NCCL: {}: {}; last error: {}", call, ncclGetErrorString(result), ncclGetLastError(communicator));
  if (result == ncclRemoteError) throw PeerLostError(text);
  throw BackendError(text);
}

// A call on a communicator that does not block may return while it is still being carried out.
inline void check_nccl(ncclResult_t result, std::string_view call, ncclComm_t communicator = nullptr) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw_nccl_error(result, call, communicator);
}

// Calls between its construction and end() are carried out together.
class NcclCallGroup {
 public:
  NcclCallGroup() { check_nccl(ncclGroupStart(), "ncclGroupStart"); }
  NcclCallGroup(const NcclCallGroup&) = delete;
  NcclCallGroup& operator=(const NcclCallGroup&) = delete;
  ~NcclCallGroup() {
    if (!has_ended_) static_cast<void>(ncclGroupEnd());  // or every later call would belong to this group
  }
  void end(ncclComm_t communicator) {
    has_ended_ = true;
    check_nccl(ncclGroupEnd(), "ncclGroupEnd", communicator);
  }

 private:
  bool has_ended_ = false;
};

ncclDataType_t nccl_type(DataType type);
ncclRedOp_t nccl_op(ReduceOp op);  // sum, min, max and product

}  // namespace fedrun
