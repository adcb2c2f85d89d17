// The file behind --config: flags by their long names, flat or nested, as YAML.
#pragma once

#include <fedrun/launcher/command_line.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

// One value or list of the file. Nested keys are joined by '-', and '_' is the same as '-', so that
// {stall_check: {warning-time-seconds: 5}} has the key stall-check-warning-time-seconds.
struct ConfigEntry {
  std::string key;
  std::vector<std::string> values;
  bool is_list = false;
  int line = 1;
};

// Both throw UsageError with file and line. `file` is only for messages.
std::vector<ConfigEntry> parse_config(std::string_view text, std::string_view file);

// The flags that the entries mean. Their names are such as "run.yaml:3: threads", for further messages.
std::vector<GivenFlag> flags_of_config(const std::vector<ConfigEntry>& entries, std::string_view file);

std::vector<GivenFlag> read_config(const std::filesystem::path& file);

}  // namespace fedrun::launcher
