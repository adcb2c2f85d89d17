#include "step_clock.h"

#include <fedrun/train/device_stream.h>

namespace fedrun::bench {

void StepClock::mark() {
  if (device_.is_cpu()) {
    moments_.push_back(std::chrono::steady_clock::now());
    return;
  }
  events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);  // the one that takes the time
  events_.back().record(current_stream(device_));
}

std::vector<double> StepClock::laps() {
  std::vector<double> laps;
  for (std::size_t i = 1; i < moments_.size(); ++i) {
    laps.push_back(std::chrono::duration<double, std::milli>(moments_[i] - moments_[i - 1]).count());
  }
  if (!events_.empty()) events_.back().synchronize();
  for (std::size_t i = 1; i < events_.size(); ++i) laps.push_back(events_[i - 1].elapsedTime(events_[i]));
  moments_.clear();
  events_.clear();
  return laps;
}

}  // namespace fedrun::bench
