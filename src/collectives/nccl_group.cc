#include <fedrun/collectives/nccl_call.h>
#include <fedrun/collectives/nccl_group.h>
#include <fedrun/collectives/nccl_memory.h>
#include <fedrun/collectives/nccl_run.h>
#include <fedrun/collectives/staged_run.h>
#include <fedrun/core/log.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace fedrun {
namespace {

using namespace std::chrono_literals;

// Copies end soon, unless what comes before them on the caller's stream does not.
constexpr auto longest_settling = 5s;

// Zeroed, on a stream of its own, because the group's may be busy for long.
Memory zeroed(Memory memory) {
  const CudaStream stream;
  check_cuda(cudaMemsetAsync(memory.data(), 0, std::max<std::size_t>(memory.bytes(), 1), stream.get()),
             "cudaMemsetAsync");
  check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  return memory;
}

}  // namespace

static_assert(sizeof(DeviceGroup::Id) == sizeof(ncclUniqueId));

NcclGroup::~NcclGroup() {
  if (!communicator_) return;
  static_cast<void>(cudaSetDevice(gpu_));  // the last owner may be any thread
  communicator_->end(stream());
}

std::unique_ptr<DeviceRun> NcclGroup::prepare(ConstBuffer input, Buffer output) {
  use_gpu();
  return std::make_unique<NcclRun>(shared_from_this(), input, output);
}

std::unique_ptr<DeviceRun> NcclGroup::prepare_answer() {
  use_gpu();
  return std::make_unique<NcclRun>(shared_from_this());
}

std::unique_ptr<DeviceRun> NcclGroup::prepare_staged(ConstBuffer input, void* host_input, Buffer output,
                                                     const void* host_output) {
  use_gpu();
  make_copy_streams();
  return std::make_unique<StagedRun>(shared_from_this(), input, host_input, output, host_output);
}

void NcclGroup::make_copy_streams() {
  if (!to_host_) to_host_.emplace();
  if (!from_host_) from_host_.emplace();
}

DeviceGroup::Id NcclGroup::make_id() {
  const ncclUniqueId id = NcclCommunicator::make_id();
  Id bytes;
  std::memcpy(bytes.data(), &id, sizeof id);
  return bytes;
}

std::shared_ptr<DeviceGroup> NcclGroup::split(std::optional<int> color, const DeviceSeat& seat) {
  use_gpu();
  return std::make_shared<NcclGroup>(gpu_, seat, communicator_->split(color, seat.rank, seat));
}

std::shared_ptr<DeviceGroup> NcclGroup::make(const std::optional<Id>& id, const DeviceSeat& seat) {
  use_gpu();
  if (!id) return std::make_shared<NcclGroup>(gpu_, seat);
  ncclUniqueId unique;
  std::memcpy(&unique, id->data(), sizeof unique);
  return std::make_shared<NcclGroup>(gpu_, seat, std::make_shared<NcclCommunicator>(unique, seat));
}

Memory NcclGroup::allocate(std::size_t bytes) {
  use_gpu();
  const std::size_t least = std::max<std::size_t>(bytes, 1);
  if (!communicator_) {
    void* data = nullptr;
    check_cuda(cudaMalloc(&data, least), "cudaMalloc");
    return zeroed(Memory(data, bytes, [data] { static_cast<void>(cudaFree(data)); }));
  }
  auto owner = std::make_shared<NcclMemory>(least, gpu_, communicator_);  // shared: functions are copied
  owner->enroll();
  void* const data = owner->data();
  return zeroed(Memory(data, bytes, [owner = std::move(owner)]() mutable { owner.reset(); }));
}

CudaScratch NcclGroup::scratch(std::size_t bytes) {
  if (!pool_) pool_.emplace(gpu_);
  return {bytes, *pool_, stream()};
}

std::shared_ptr<void> NcclGroup::pin(void* data, std::size_t bytes) {
  use_gpu();
  const cudaError_t result = cudaHostRegister(data, bytes, cudaHostRegisterDefault);
  if (result == cudaSuccess) return {data, [](void* pinned) { static_cast<void>(cudaHostUnregister(pinned)); }};
  static_cast<void>(cudaGetLastError());  // it is told here
  // CUDA copies from and to such memory as well, in the same order; but the host waits for copies that come to it.
  if (!std::exchange(has_warned_about_pinning_, true)) {
    log::warn(
        "CUDA cannot pin the memory through which elements on GPUs go ({}): they go slower; a container may need the "
        "right to lock memory (--ulimit memlock=-1)",
        cudaGetErrorString(result));
  }
  return {data, [](void*) {}};
}

void NcclGroup::give_up() noexcept {
  if (communicator_) communicator_->abort();
}

void NcclGroup::settle() noexcept {
  if (!from_host_) return;
  try {
    use_gpu();
    CudaEvent last;
    last.record(stream_to_host());
    last.let_wait(stream_from_host());
    last.record(stream_from_host());
    const auto start = std::chrono::steady_clock::now();
    while (!last.has_happened() && std::chrono::steady_clock::now() - start < longest_settling) {
      std::this_thread::yield();
    }
  } catch (const Error& error) {
    log::info("a GPU does not tell whether it still copies: {}", error.what());
  }
}

}  // namespace fedrun
