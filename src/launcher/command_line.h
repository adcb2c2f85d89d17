// Which flags were given, as what, and where the program begins; what they mean is for options.
#pragma once

#include <fedrun/launcher/flag.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

struct GivenFlag {
  const Flag* flag;
  std::string name;  // as messages call it: the spelling on the command line, or place and key in a file
  std::string value;
};

struct CommandLine {
  bool only_check = false;  // the first word is `check`
  std::vector<GivenFlag> flags;
  std::vector<std::string> program;
};

// Throws UsageError for flags that fedrun does not have, and for missing or needless values.
CommandLine read_command_line(std::span<const std::string> arguments);

// The flag that a misspelt name was probably meant to be.
std::optional<std::string_view> nearest_flag(std::string_view name);

}  // namespace fedrun::launcher
