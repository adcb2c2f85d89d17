// One operation of this rank on the stream of its group.
#pragma once

#include <fedrun/collectives/cuda_handles.h>
#include <fedrun/collectives/device_reduction.h>
#include <fedrun/collectives/nccl_group.h>

#include <memory>
#include <optional>
#include <vector>

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
  bool is_in_host_memory() override;
  void go_back() override;

 private:
  enum class State { prepared, launching, coming_to_host, launching_return, on_stream };
  bool is_launching() const { return state_ == State::launching || state_ == State::launching_return; }
  bool is_sharded() const { return !shards_.empty(); }
  std::size_t own_shard() const { return shards_[static_cast<std::size_t>(group_->rank())]; }

  // nccl_run_reduce.cc: the part of the work that comes before, by and after NCCL.
  void reduce(const DeviceTerms& terms);
  void bring_elements();
  void make_operator();
  void reduce_parts(const std::vector<std::size_t>& counts, void* part);
  void scale_result();
  void copy_shard_to_host();
  void copy_shard(void* to, const void* from, cudaStream_t copy_stream);

  void broadcast(const DeviceTerms& terms);
  void allgather(const DeviceTerms& terms);
  void gather(const DeviceTerms& terms);
  void alltoall(const DeviceTerms& terms);
  void gather_parts(const void* part, const std::vector<std::size_t>& counts, void* all, DataType type);
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

  // Of a sharded one.
  std::vector<std::size_t> shards_;  // elements by rank
  void* shard_memory_ = nullptr;     // of the host
  CudaScratch shard_scratch_;        // and of the device
  std::optional<CudaEvent> copied_;  // to the host, or back, once that has begun
};

// Where an element lies.
inline const std::byte* at(const void* data, std::size_t element, DataType type) {
  return static_cast<const std::byte*>(data) + element * size_of(type);
}
inline std::byte* at(void* data, std::size_t element, DataType type) {
  return static_cast<std::byte*>(data) + element * size_of(type);
}

// What every rank has at least, where only the last has more; 0 where the parts are otherwise uneven.
std::size_t equal_part(const std::vector<std::size_t>& counts);

}  // namespace fedrun
