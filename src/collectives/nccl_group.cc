#include <fedrun/collectives/nccl_call.h>
#include <fedrun/collectives/nccl_group.h>
#include <fedrun/collectives/nccl_run.h>

#include <algorithm>
#include <cstring>

namespace fedrun {

static_assert(sizeof(DeviceGroup::Id) == sizeof(ncclUniqueId));

std::unique_ptr<DeviceRun> NcclGroup::prepare(ConstBuffer input, Buffer output) {
  use_gpu();
  return std::make_unique<NcclRun>(shared_from_this(), input, output);
}

std::unique_ptr<DeviceRun> NcclGroup::prepare_answer() {
  use_gpu();
  return std::make_unique<NcclRun>(shared_from_this());
}

DeviceGroup::Id NcclGroup::make_id() {
  const ncclUniqueId id = NcclCommunicator::make_id();
  Id bytes;
  std::memcpy(bytes.data(), &id, sizeof id);
  return bytes;
}

std::shared_ptr<DeviceGroup> NcclGroup::split(std::optional<int> color, int key, const DeviceSeat& seat) {
  use_gpu();
  auto communicator = communicator_->split(color, key, seat);
  if (!communicator) return nullptr;
  return std::make_shared<NcclGroup>(gpu_, seat.rank, seat.ranks, std::move(communicator));
}

std::shared_ptr<DeviceGroup> NcclGroup::make(const Id& id, const DeviceSeat& seat) {
  use_gpu();
  ncclUniqueId unique;
  std::memcpy(&unique, id.data(), sizeof unique);
  return std::make_shared<NcclGroup>(gpu_, seat.rank, seat.ranks, std::make_shared<NcclCommunicator>(unique, seat));
}

Memory NcclGroup::allocate(std::size_t bytes) {
  use_gpu();
  void* data = nullptr;
  check_nccl(ncclMemAlloc(&data, std::max<std::size_t>(bytes, 1)), "ncclMemAlloc", communicator_->get());
  Memory memory(data, bytes, [data] { static_cast<void>(ncclMemFree(data)); });
  const CudaStream stream;  // of its own, because the group's may be busy for long
  check_cuda(cudaMemsetAsync(data, 0, std::max<std::size_t>(bytes, 1), stream.get()), "cudaMemsetAsync");
  check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  void* const handle = communicator_->register_memory(data, std::max<std::size_t>(bytes, 1));
  // The memory may outlive the communicator, which then has deregistered it.
  return Memory(data, bytes,
                [handle, owner = std::weak_ptr(communicator_),
                 registered = std::make_shared<Memory>(std::move(memory))] {  // shared: functions are copied
                  if (const auto communicator = owner.lock()) communicator->deregister_memory(handle);
                });
}

}  // namespace fedrun
