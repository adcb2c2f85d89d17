#include <fedrun/collectives/staged_run.h>

namespace fedrun {

StagedRun::StagedRun(std::shared_ptr<NcclGroup> group, ConstBuffer input, void* host_input, Buffer output,
                     const void* host_output)
    : group_(std::move(group)), output_(output), host_output_(host_output), is_in_host_memory_(host_input == nullptr) {
  ready_.record(static_cast<cudaStream_t>(input.stream));
  if (is_in_host_memory_) return;
  const cudaStream_t stream = group_->stream_to_host();
  ready_.let_wait(stream);
  check_cuda(cudaMemcpyAsync(host_input, input.data, input.bytes(), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  copied_.record(stream);
}

bool StagedRun::is_in_host_memory() {
  if (!is_in_host_memory_) is_in_host_memory_ = copied_.has_happened();
  return is_in_host_memory_;
}

void StagedRun::go_back() {
  group_->use_gpu();
  const cudaStream_t stream = group_->stream_from_host();
  if (host_output_ != nullptr) {
    ready_.let_wait(stream);  // also where this rank brings nothing: the output may be in use until then
    check_cuda(cudaMemcpyAsync(output_.data, host_output_, output_.bytes(), cudaMemcpyHostToDevice, stream),
               "cudaMemcpyAsync");
  }
  done_.record(stream);
  is_going_back_ = true;
}

void StagedRun::let_wait(void* stream) {
  group_->use_gpu();
  done_.let_wait(static_cast<cudaStream_t>(stream));
}

}  // namespace fedrun
