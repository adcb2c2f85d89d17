// Watches that all ranks come up in time, and says host by host which are still missing.
#pragma once

#include <fedrun/launcher/run_record.h>

#include <chrono>
#include <optional>
#include <string>

namespace fedrun::launcher {

// A rank has come up when it is connected to all others, or has ended. Programs that do not use fedrun never connect,
// and one that does may have much to do before: without a limit of the user's, ranks must only start in time.
class StartWatch {
 public:
  explicit StartWatch(std::optional<std::chrono::seconds> limit) : limit_(limit) {}

  // When to ask next; unset: there is nothing more to watch.
  std::optional<RunClock::time_point> next(const RunRecord& record) const;

  // The hosts' progress, now and then while one waits; otherwise empty.
  std::string progress(const RunRecord& record, RunClock::time_point now);

  // Why the run is to be given up; unset: it is not.
  std::optional<std::string> problem(const RunRecord& record, RunClock::time_point now) const;

 private:
  std::optional<RunClock::time_point> deadline(const RunRecord& record) const;

  std::optional<std::chrono::seconds> limit_;
  std::chrono::seconds next_progress_{5};
};

}  // namespace fedrun::launcher
