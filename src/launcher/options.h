// What the user asked for: fedrun's own flags, and where the program and its arguments begin.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fedrun::launcher {

enum class Action { launch, show_help, show_version, check_build };

struct Options {
  Action action = Action::launch;
  std::optional<int> ranks;                                   // unset: one per slot of the hosts
  std::optional<std::string> hosts;                           // as in -H a:2,b
  std::optional<std::string> hostfile;                        // path
  std::vector<std::pair<std::string, std::string>> settings;  // FEDRUN_* variables that flags have set
  std::vector<std::string> pass;                              // -x: NAME, or NAME=VALUE
  bool verbose = false;
  bool dry_run = false;
  std::vector<std::string> program;  // name and arguments, exactly as given
};

// `arguments` is argv without fedrun's own name. Flags end at the first word that is not one, or at `--`; what follows
// belongs to the program. Throws UsageError that names the flag.
Options parse_options(std::span<const std::string> arguments);

// Made from the same table of flags that parse_options reads, and from the table of FEDRUN_* variables.
std::string help_text();

}  // namespace fedrun::launcher
