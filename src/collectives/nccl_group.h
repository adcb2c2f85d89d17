// Carries out the operations of one group on GPUs: with NCCL between the ranks that it connects, and copies to and from
// the memory of the host.
#pragma once

#include <fedrun/collectives/cuda_handles.h>
#include <fedrun/collectives/device_group.h>
#include <fedrun/collectives/nccl_communicator.h>

#include <memory>
#include <optional>

namespace fedrun {

// Shared with the operations under way, which may outlive the group's engine.
class NcclGroup final : public DeviceGroup, public std::enable_shared_from_this<NcclGroup> {
 public:
  // Without a communicator NCCL connects nobody.
  explicit NcclGroup(int gpu, const DeviceSeat& seat = {}, std::shared_ptr<NcclCommunicator> communicator = {})
      : gpu_(gpu), rank_(seat.rank), ranks_(seat.ranks), communicator_(std::move(communicator)) {}

  ~NcclGroup() override;
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  int gpu() const override { return gpu_; }
  std::unique_ptr<DeviceRun> prepare(ConstBuffer input, Buffer output) override;
  std::unique_ptr<DeviceRun> prepare_answer() override;
  std::unique_ptr<DeviceRun> prepare_staged(ConstBuffer input, void* host_input, Buffer output,
                                            const void* host_output) override;
  bool may_launch() const override { return !is_launching_; }
  bool is_connected() const override { return communicator_ != nullptr; }
  Id make_id() override;
  std::shared_ptr<DeviceGroup> split(std::optional<int> color, const DeviceSeat& seat) override;
  std::shared_ptr<DeviceGroup> make(const std::optional<Id>& id, const DeviceSeat& seat) override;
  Memory allocate(std::size_t bytes) override;
  std::shared_ptr<void> pin(void* data, std::size_t bytes) override;
  void give_up() noexcept override;
  void settle() noexcept override;

  // Among the ranks that NCCL connects.
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  NcclCommunicator& communicator() const { return *communicator_; }
  cudaStream_t stream() const { return stream_.get(); }
  // Copies have streams of their own, one each way: a stream does one thing after the other, and a copy to the host may
  // wait long for its elements.
  cudaStream_t stream_to_host() const { return to_host_->get(); }
  cudaStream_t stream_from_host() const { return from_host_->get(); }
  void make_copy_streams();  // most groups need none
  CudaScratch scratch(std::size_t bytes);

  // Threads come and go, and each begins with GPU 0.
  void use_gpu() const { check_cuda(cudaSetDevice(gpu_), "cudaSetDevice"); }
  // From a launch until all of it is on the stream.
  void set_launching(bool is_launching) { is_launching_ = is_launching; }

 private:
  int gpu_;
  int rank_;
  int ranks_;
  CudaStream stream_;
  std::optional<CudaStream> to_host_;
  std::optional<CudaStream> from_host_;
  std::optional<CudaPool> pool_;
  std::shared_ptr<NcclCommunicator> communicator_;  // shared: registered memory asks whether it is still there
  bool is_launching_ = false;
  bool has_warned_about_pinning_ = false;
};

}  // namespace fedrun
