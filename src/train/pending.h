// Collectives on tensors that have been started and may not have finished.
#pragma once

#include <fedrun/collectives/work.h>
#include <fedrun/train/device_stream.h>
#include <torch/torch.h>

#include <memory>
#include <utility>
#include <vector>

namespace fedrun {

// The user's tensor, and the contiguous copy of it in which an operation leaves its result.
struct StridedResult {
  torch::Tensor tensor;
  torch::Tensor contiguous;
};

inline torch::Device device_of_result(const torch::Tensor& result) { return result.device(); }
// The GPU, if any of them is on one.
inline torch::Device device_of_result(const std::vector<torch::Tensor>& results) {
  for (const torch::Tensor& result : results) {
    if (!result.device().is_cpu()) return result.device();
  }
  return torch::kCPU;
}

// Owns the tensors of the operation until it has finished. Used by the thread that started it. Where a result belongs
// into a tensor that is not contiguous, done() or wait() puts it there; one that is destroyed before waits and does
// not.
//
// Results on a GPU are as those of Torch's own operations: in place for all that this thread does with them after
// wait(), which does not wait for the GPU.
template <typename Result>
class Pending {
 public:
  Pending(Result result, std::vector<torch::Tensor> inputs, std::vector<StridedResult> strided,
          std::unique_ptr<Work> work)
      : state_(new State{std::move(result), std::move(inputs), std::move(strided), std::move(work)}) {}

  // True once the result is in place; never blocks. Throws what went wrong.
  bool done() {
    if (state_->work && state_->work->done()) finish();
    return !state_->work;
  }

  // Returns the result when it is in place; may be called again. Throws what went wrong.
  Result wait() {
    if (state_->work) finish();
    return state_->result;
  }

 private:
  struct State {
    Result result;
    std::vector<torch::Tensor> inputs;
    std::vector<StridedResult> strided;
    std::unique_ptr<Work> work;  // last: its destructor may wait for what uses the tensors above
  };

  void finish() {
    wait_for_result(*state_->work, device_of_result(state_->result));
    const torch::NoGradGuard no_grad;
    for (const StridedResult& result : state_->strided) result.tensor.copy_(result.contiguous);
    state_->strided.clear();
    state_->work.reset();
    for (const torch::Tensor& input : state_->inputs) keep_for_current_stream(input);
    state_->inputs.clear();
  }

  std::unique_ptr<State> state_;
};

}  // namespace fedrun
