// Runs one command to its end, with its output in a file, so that a signal ends it in order and not at once.
#pragma once

#include <fedrun/launcher/blocked_signals.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fedrun::bench::suite {

struct CommandEnd {
  int exit_code = 0;  // 128 + n when signal n ended it, 127 when it could not be started
  double seconds = 0;
};

// One at a time. While it lives, signals reach this process through it. Use it in a process with a single thread.
class Runner {
 public:
  // The command gets no input, and SIGTERM when this process dies. Throws BackendError when no process can be made.
  CommandEnd run(const std::vector<std::string>& command, const std::filesystem::path& log);

  // The signal that has told us to stop, if any: the command was told as well, and nothing more shall be run.
  std::optional<int> stopped_by();

 private:
  void take_signals(std::optional<pid_t> pass_on_to);

  launcher::BlockedSignals signals_;
  std::optional<int> stopped_by_;
};

}  // namespace fedrun::bench::suite
