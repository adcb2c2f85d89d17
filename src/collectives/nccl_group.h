// Carries out the operations of one group on GPUs with NCCL.
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
  NcclGroup(int gpu, int rank, int ranks, std::shared_ptr<NcclCommunicator> communicator)
      : gpu_(gpu), rank_(rank), ranks_(ranks), communicator_(std::move(communicator)) {}

  int gpu() const override { return gpu_; }
  std::unique_ptr<DeviceRun> prepare(ConstBuffer input, Buffer output) override;
  std::unique_ptr<DeviceRun> prepare_answer() override;
  bool may_launch() const override { return !is_launching_; }
  Id make_id() override;
  std::shared_ptr<DeviceGroup> split(std::optional<int> color, int key, const DeviceSeat& seat) override;
  std::shared_ptr<DeviceGroup> make(const Id& id, const DeviceSeat& seat) override;
  Memory allocate(std::size_t bytes) override;
  void give_up() noexcept override { communicator_->abort(); }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  NcclCommunicator& communicator() const { return *communicator_; }
  cudaStream_t stream() const { return stream_.get(); }

  // Threads come and go, and each begins with GPU 0.
  void use_gpu() const { check_cuda(cudaSetDevice(gpu_), "cudaSetDevice"); }
  // From a launch until all of it is on the stream.
  void set_launching(bool is_launching) { is_launching_ = is_launching; }

 private:
  int gpu_;
  int rank_;
  int ranks_;
  CudaStream stream_;                               // before the communicator, so that it is gone first
  std::shared_ptr<NcclCommunicator> communicator_;  // shared: registered memory asks whether it is still there
  bool is_launching_ = false;
};

}  // namespace fedrun
