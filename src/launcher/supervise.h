// Runs mpirun to its end: shows what the ranks say, watches the clock, passes signals on, explains a failure, and
// leaves no process behind.
#pragma once

#include <fedrun/launcher/keeper_options.h>
#include <fedrun/launcher/mpirun_command.h>
#include <fedrun/launcher/run_display.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace fedrun::launcher {

struct Supervision {
  std::vector<std::string> hosts;  // of each rank
  RunDisplay::Options display;
  bool show_mpirun_messages = false;
  std::optional<std::chrono::seconds> start_timeout;  // for all ranks to come up; unset: only to start, see StartWatch
  std::optional<std::chrono::seconds> timeout;        // for the whole run
  KeeperOptions keeper;                               // as the ranks' keepers have it
};

constexpr int exit_timeout = 124;  // as timeout(1) has it

// Returns fedrun's exit code: that of the first rank that failed; 128 + n after signal n; 124 after a time limit.
// The first SIGINT, SIGTERM or SIGHUP ends all ranks in order, a second one at once.
// Call from a process with a single thread: signals are taken from a file descriptor, without handlers.
int supervise(const MpirunCommand& command, const Supervision& supervision);

}  // namespace fedrun::launcher
