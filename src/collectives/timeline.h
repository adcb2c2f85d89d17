// Remembers when this rank's operations began and ended.
#pragma once

#include <fedrun/collectives/operation.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fedrun {

struct TimelineEvent {
  using Time = std::chrono::steady_clock::time_point;

  Collective kind = Collective::barrier;
  std::string name{};
  std::uint64_t bytes = 0;
  std::uint64_t group = 0;     // the world is 0
  std::uint64_t position = 0;  // in the order of the group
  Time submitted{};
  Time all_arrived{};  // until then this rank waited for others
  Time finished{};
};

// One thread.
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;

  bool is_on() const { return is_on_; }
  void start() { is_on_ = true; }
  std::vector<TimelineEvent> stop() {
    is_on_ = false;
    return std::exchange(events_, {});
  }

  void record(const Operation& operation, std::uint64_t group, std::uint64_t position, Clock::time_point submitted,
              Clock::time_point all_arrived) {
    const std::uint64_t bytes = std::max(operation.input.bytes(), operation.output.bytes());
    events_.push_back({operation.kind, operation.name, bytes, group, position, submitted, all_arrived, Clock::now()});
  }

 private:
  bool is_on_ = false;
  std::vector<TimelineEvent> events_;
};

}  // namespace fedrun
