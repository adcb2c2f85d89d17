// Owns one NCCL communicator that never blocks: makes it within a time limit, asks how it is, and ends it.
#pragma once

#include <cuda_runtime_api.h>
#include <fedrun/collectives/device_group.h>
#include <nccl.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace fedrun {

// One thread at a time.
class NcclCommunicator {
 public:
  static ncclUniqueId make_id();

  // Collective over the ranks of the seat. Throws what the seat's watch throws, PeerLostError after its time limit.
  NcclCommunicator(const ncclUniqueId& id, const DeviceSeat& seat);
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator() { abort(); }

  // Collective, too, unless it has been aborted or an exception is on its way; does not wait for ever. All that was
  // launched is on the stream.
  void end(cudaStream_t stream) noexcept;

  // Collective over this communicator; nothing may be under way on it. The seat is one of the new group. nullptr for a
  // rank without a color. After an error abort() is all that may be called.
  std::shared_ptr<NcclCommunicator> split(std::optional<int> color, int key, const DeviceSeat& seat);

  ncclComm_t get() const { return communicator_; }

  // Has the last call been carried out? Throws if something has failed, also if it happened later, on the device.
  bool is_settled() const;
  // Waits for that, but not for ever. Also true if something has failed: nothing is being carried out then.
  bool settles() const noexcept;

  // Ends what is under way, without the other ranks.
  void abort() noexcept;
  bool is_aborted() const { return communicator_ == nullptr; }

  // Lets NCCL use the memory where it lies; until it is released or the communicator ends.
  void* register_memory(void* data, std::size_t bytes);
  void deregister_memory(void* handle) noexcept;

 private:
  explicit NcclCommunicator(ncclComm_t communicator) : communicator_(communicator) {}
  void wait_until_settled(const DeviceSeat& seat, std::string_view call) const;
  bool finalize(cudaStream_t stream) noexcept;

  ncclComm_t communicator_ = nullptr;
  ncclComm_t child_ = nullptr;  // of a split that is not through; NCCL writes it whenever it likes
  std::vector<void*> registrations_;
  int exceptions_at_start_ = std::uncaught_exceptions();
};

}  // namespace fedrun
