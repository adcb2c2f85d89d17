// The hosts of a run and how many ranks each takes, from -H or from a file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

struct Host {
  std::string name;
  int slots;  // how many ranks it takes

  bool operator==(const Host&) const = default;
};

// The name itself. Names end up on the command line of ssh, so UsageError is thrown for one that looks like an option
// or like anything for a shell.
std::string checked_host_name(std::string_view name);

// All three add up the slots of a host that is named twice, as Open MPI does, and keep the order of first mention.
// A host without a number of slots gets `default_slots`. They throw UsageError that says where and what is expected.

// "a:2,b": two slots on a, one on b.
std::vector<Host> parse_hosts(std::string_view list, int default_slots = 1);

// One host a line: "a slots=2", "a:2" or "a"; # begins a comment. `file` is only for messages.
std::vector<Host> parse_hostfile(std::string_view text, std::string_view file, int default_slots = 1);
std::vector<Host> read_hostfile(const std::filesystem::path& file, int default_slots = 1);

// By its names only, without asking the network.
bool is_this_machine(const Host& host);

}  // namespace fedrun::launcher
