// Runs several commands at once, each with text for its input, until all have ended or time is up.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace fedrun::launcher {

struct Command {
  std::vector<std::string> arguments;  // the program first, which is searched on PATH
  std::string input = {};              // for its standard input
};

struct CommandResult {
  int start_error = 0;  // errno when it could not be started; then all else is empty
  bool late = false;    // it was still running when time was up, and was killed
  int exit_code = 0;    // 128 + n when signal n ended it
  std::string output;
  std::string errors;
  std::chrono::system_clock::time_point last_output_at = {};  // when the last byte of the output came

  bool succeeded() const { return start_error == 0 && !late && exit_code == 0; }
};

// The results are in the order of the commands. What the commands say is in English, whatever the user's language.
//
// Each runs in a session of its own: none can ask the user for anything through the terminal, and one that is late is
// killed with all that it has started. When this process dies, they get SIGTERM. Without a limit it waits for all.
// Call from a process with a single thread.
std::vector<CommandResult> run_commands(const std::vector<Command>& commands,
                                        std::optional<std::chrono::milliseconds> limit);

}  // namespace fedrun::launcher
