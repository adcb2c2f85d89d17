// One operation of this rank whose elements go through the memory of the host.
#pragma once

#include <fedrun/collectives/cuda_handles.h>
#include <fedrun/collectives/nccl_group.h>

#include <memory>

namespace fedrun {

class StagedRun final : public DeviceRun {
 public:
  // The copy to the host comes after what is on the input's stream now.
  StagedRun(std::shared_ptr<NcclGroup> group, ConstBuffer input, void* host_input, Buffer output,
            const void* host_output);

  void launch(const DeviceTerms&) override {}
  bool is_in_host_memory() override;
  void go_back() override;
  Progress advance() override { return progress(is_going_back_ && done_.has_happened(), false); }
  bool is_on_stream() const override { return is_going_back_; }
  void let_wait(void* stream) override;

 private:
  std::shared_ptr<NcclGroup> group_;  // shared by all its runs
  Buffer output_;
  const void* host_output_;
  bool is_in_host_memory_;
  bool is_going_back_ = false;
  CudaEvent ready_;
  CudaEvent copied_;
  CudaEvent done_;
};

}  // namespace fedrun
