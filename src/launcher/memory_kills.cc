#include <fedrun/launcher/memory_kills.h>

#include <fstream>
#include <sstream>
#include <string>

namespace fedrun::launcher {
namespace {

std::string read_file(const std::string& name) {
  std::ifstream file(name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Version 2 of control groups: "0::/user.slice/job1"
std::string control_group() {
  std::istringstream lines(read_file("/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return {};
}

}  // namespace

std::optional<long> parse_memory_kills(std::string_view text) {
  std::istringstream words{std::string(text)};
  for (std::string name; words >> name;) {
    long count = 0;
    if (!(words >> count)) return std::nullopt;
    if (name == "oom_kill") return count;
  }
  return std::nullopt;
}

long count_memory_kills() {
  if (const auto ours = parse_memory_kills(read_file("/sys/fs/cgroup" + control_group() + "/memory.events")))
    return *ours;
  return parse_memory_kills(read_file("/proc/vmstat")).value_or(0);
}

}  // namespace fedrun::launcher
