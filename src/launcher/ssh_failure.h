// Explains why a host could not be reached, from what ssh said.
#pragma once

#include <fedrun/launcher/remote_shell.h>
#include <fedrun/launcher/run_commands.h>

#include <string>

namespace fedrun::launcher {

struct Explanation {
  std::string what;
  std::string remedy;  // with the exact command to try
};

// For a command of RemoteShell::command that did not succeed within `limit`.
Explanation explain_ssh_failure(const CommandResult& result, const Host& host, const RemoteShell& shell,
                                std::chrono::seconds limit);

}  // namespace fedrun::launcher
