// Collectives on tensors that have been started and may not have finished.
#pragma once

#include <fedrun/collectives/work.h>
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

// Owns the tensors of the operation until it has finished. Used by the thread that started it. Where a result belongs
// into a tensor that is not contiguous, done() or wait() puts it there; one that is destroyed before waits and does
// not.
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
    state_->work->wait();
    const torch::NoGradGuard no_grad;
    for (const StridedResult& result : state_->strided) result.tensor.copy_(result.contiguous);
    state_->strided.clear();
    state_->work.reset();
    state_->inputs.clear();
  }

  std::unique_ptr<State> state_;
};

}  // namespace fedrun
