// One operation of this rank on the stream of its group.
#pragma once

#include <fedrun/collectives/cuda_handles.h>
#include <fedrun/collectives/device_reduction.h>
#include <fedrun/collectives/nccl_group.h>

#include <memory>
#include <optional>

namespace fedrun {

class NcclRun final : public DeviceRun {
 public:
  // What is on the input's stream now makes the elements ready.
  NcclRun(std::shared_ptr<NcclGroup> group, ConstBuffer input, Buffer output);
  // Of a rank that has joined: it brings nothing and takes nothing.
  explicit NcclRun(std::shared_ptr<NcclGroup> group) : group_(std::move(group)) {}
  ~NcclRun() override;
  NcclRun(const NcclRun&) = delete;
  NcclRun& operator=(const NcclRun&) = delete;

  void launch(const DeviceTerms& terms) override;
  Progress advance() override;
  bool is_on_stream() const override { return state_ == State::on_stream; }
  void let_wait(void* stream) override;

 private:
  enum class State { prepared, launching, on_stream };

  // The part of the work that comes before, by and after NCCL.
  void reduce(const DeviceTerms& terms);
  void bring_elements();
  void make_operator();
  void reduce_parts(const DeviceTerms& terms);
  void scale_result();
  void broadcast(const DeviceTerms& terms);
  void allgather(const DeviceTerms& terms);
  void gather(const DeviceTerms& terms);
  void alltoall(const DeviceTerms& terms);
  void destroy_operator() noexcept;

  ncclComm_t communicator() const { return group_->communicator().get(); }
  cudaStream_t stream() const { return group_->stream(); }
  void* scratch(CudaScratch& owner, std::size_t count) const;

  std::shared_ptr<NcclGroup> group_;  // shared by all its runs
  std::optional<ConstBuffer> input_;  // none: of a rank that has joined
  Buffer output_{};
  CudaEvent ready_;
  CudaEvent done_;
  State state_ = State::prepared;

  // Of a reduction.
  std::optional<DeviceReduction> reduction_;
  std::size_t count_ = 0;         // elements of the input
  std::size_t result_count_ = 0;  // and of this rank's result
  std::optional<ncclRedOp_t> operator_;
  CudaScratch input_scratch_;
  CudaScratch result_scratch_;
  const void* brought_ = nullptr;  // what NCCL reads
  void* reduced_ = nullptr;        // and writes
};

}  // namespace fedrun
