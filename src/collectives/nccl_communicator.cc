#include <fedrun/collectives/cuda_handles.h>
#include <fedrun/collectives/nccl_call.h>
#include <fedrun/collectives/nccl_communicator.h>
#include <fedrun/core/log.h>

#include <algorithm>
#include <array>
#include <functional>
#include <thread>
#include <utility>

namespace fedrun {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto time_between_looks = 1ms;
// Ranks end their groups at different times, maybe in different orders; what this one had to do is done by then.
constexpr auto longest_farewell = 30s;

ncclConfig_t configuration() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

bool comes_true_soon(const std::function<bool()>& condition) {
  for (const auto start = Clock::now(); !condition();) {
    if (Clock::now() - start >= longest_farewell) return false;
    std::this_thread::sleep_for(time_between_looks);
  }
  return true;
}

// What kernels use must stay registered until they have ended.
bool ends_soon(cudaStream_t stream) {
  CudaEvent last;
  last.record(stream);
  return comes_true_soon([&] { return last.has_happened(); });
}

}  // namespace

ncclDataType_t nccl_type(DataType type) {
  constexpr std::array<ncclDataType_t, 9> types = {ncclUint8,    ncclInt8,    ncclInt32,   ncclInt64, ncclFloat16,
                                                   ncclBfloat16, ncclFloat32, ncclFloat64, ncclUint8};
  return types[static_cast<std::size_t>(type)];
}

ncclRedOp_t nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::max:
      return ncclMax;
    case ReduceOp::product:
      return ncclProd;
    default:
      return ncclSum;
  }
}

ncclUniqueId NcclCommunicator::make_id() {
  ncclUniqueId id;
  check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  return id;
}

NcclCommunicator::NcclCommunicator(const ncclUniqueId& id, const DeviceSeat& seat) {
  ncclConfig_t config = configuration();
  try {
    check_nccl(ncclCommInitRankConfig(&communicator_, seat.ranks, id, seat.rank, &config), "ncclCommInitRankConfig");
    wait_until_settled(seat, "ncclCommInitRankConfig");
  } catch (const Error&) {
    abort();
    throw;
  }
}

std::shared_ptr<NcclCommunicator> NcclCommunicator::split(std::optional<int> color, int key, const DeviceSeat& seat) {
  ncclConfig_t config = configuration();
  check_nccl(ncclCommSplit(communicator_, color.value_or(NCCL_SPLIT_NOCOLOR), key, &child_, &config), "ncclCommSplit",
             communicator_);
  // NCCL tells the new communicator only when the old one is through with the split.
  wait_until_settled(seat, "ncclCommSplit");
  if (!color) return nullptr;
  // shared as its group says
  const std::shared_ptr<NcclCommunicator> made(new NcclCommunicator(std::exchange(child_, nullptr)));
  made->wait_until_settled(seat, "ncclCommSplit");
  return made;
}

bool NcclCommunicator::is_settled() const {
  ncclResult_t state = ncclSuccess;
  check_nccl(ncclCommGetAsyncError(communicator_, &state), "ncclCommGetAsyncError", communicator_);
  check_nccl(state, "asynchronous error", communicator_);
  return state != ncclInProgress;
}

void NcclCommunicator::wait_until_settled(const DeviceSeat& seat, std::string_view call) const {
  const auto start = Clock::now();
  while (!is_settled()) {
    if (seat.watch) seat.watch();
    if (seat.time_limit != 0s && Clock::now() - start >= seat.time_limit) {
      throw PeerLostError(
          fmt::format("NCCL: {} of rank {} of {} has not finished in {} s: another rank did not call it, or NCCL does "
                      "not reach it; NCCL_DEBUG=INFO tells more; gave up as FEDRUN_STALL_ABORT_SECONDS says",
                      call, seat.rank, seat.ranks, seat.time_limit.count()));
    }
    std::this_thread::sleep_for(time_between_looks);
  }
}

bool NcclCommunicator::settles() const noexcept {
  try {
    return comes_true_soon([&] { return is_aborted() || is_settled(); });
  } catch (const Error&) {
    return true;  // whoever waits for the operation reports it
  }
}

void* NcclCommunicator::register_memory(void* data, std::size_t bytes) {
  void* handle = nullptr;
  check_nccl(ncclCommRegister(communicator_, data, bytes, &handle), "ncclCommRegister", communicator_);
  registrations_.push_back(handle);
  return handle;
}

void NcclCommunicator::deregister_memory(void* handle) noexcept {
  if (std::erase(registrations_, handle) == 0 || is_aborted()) return;
  static_cast<void>(ncclCommDeregister(communicator_, handle));
}

void NcclCommunicator::abort() noexcept {
  registrations_.clear();  // they end with the communicator
  if (ncclComm_t ended = std::exchange(communicator_, nullptr)) static_cast<void>(ncclCommAbort(ended));
  // Afterwards, because now NCCL makes it no more.
  if (ncclComm_t unfinished = std::exchange(child_, nullptr)) static_cast<void>(ncclCommAbort(unfinished));
}

bool NcclCommunicator::finalize(cudaStream_t stream) noexcept {
  try {
    if (!registrations_.empty() && !ends_soon(stream)) return false;
    while (!registrations_.empty()) deregister_memory(registrations_.back());
    check_nccl(ncclCommFinalize(communicator_), "ncclCommFinalize", communicator_);
    wait_until_settled({.time_limit = longest_farewell}, "ncclCommFinalize");
    check_nccl(ncclCommDestroy(communicator_), "ncclCommDestroy", communicator_);
    communicator_ = nullptr;
    return true;
  } catch (const Error& error) {
    log::info("a communicator is aborted because it does not end: {}", error.what());
    return false;
  }
}

void NcclCommunicator::end(cudaStream_t stream) noexcept {
  if (is_aborted()) return;
  if (std::uncaught_exceptions() > exceptions_at_start_ || !finalize(stream)) abort();
}

}  // namespace fedrun
