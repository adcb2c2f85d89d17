// Torch's streams: where it puts the work that makes a tensor's elements on a GPU, and how fedrun waits in them.
#pragma once

#include <c10/core/Stream.h>
#include <fedrun/collectives/work.h>
#include <torch/torch.h>

#include <vector>

namespace fedrun {

// On which this thread's operations on tensors of the device are put; the device has streams.
c10::Stream current_stream(torch::Device device);

// A cudaStream_t. Through LibTorch's interface for all devices, so that nothing here needs CUDA.
void* handle_of(const c10::Stream& stream);

// The result is in place for all that this thread does with tensors of the device afterwards. A host that works with
// the device does not wait.
void wait_for_result(Work& work, torch::Device device);

// What this thread puts on its current stream uses the tensor: its memory is not used again before that is done, even
// if it was allocated on another stream.
void keep_for_current_stream(const torch::Tensor& tensor);

// The streams that have put something into memory which a later operation will read.
class StreamSet {
 public:
  // What this thread has put on its current stream by now is meant.
  void add_current(torch::Device device);
  // Makes this thread's current stream wait for all of them, and forgets them.
  void gather_into_current(torch::Device device);

 private:
  std::vector<c10::Stream> streams_;
};

}  // namespace fedrun
