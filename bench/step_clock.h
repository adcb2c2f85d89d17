// The moments of a training step, on the device that does its work: a GPU is behind the host, so its stream marks them.
#pragma once

#include <c10/core/Event.h>
#include <torch/torch.h>

#include <chrono>
#include <vector>

namespace fedrun::bench {

// Used by one thread, with the stream that is current on it.
class StepClock {
 public:
  explicit StepClock(torch::Device device) : device_(device) {}

  void mark();
  // Milliseconds from each mark to the next, once the work up to the last has been done; begins anew afterwards.
  std::vector<double> laps();

 private:
  torch::Device device_;
  std::vector<std::chrono::steady_clock::time_point> moments_;  // on the CPU
  std::vector<c10::Event> events_;                              // elsewhere
};

}  // namespace fedrun::bench
