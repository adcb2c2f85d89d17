// Adds the time for which it lives to a total.
#pragma once

#include <chrono>

namespace fedrun {

class Stopwatch {
 public:
  explicit Stopwatch(double& total_seconds) : total_seconds_(total_seconds) {}
  ~Stopwatch() { total_seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  double& total_seconds_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace fedrun
