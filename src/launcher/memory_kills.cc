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

// The file with the counts of our control group: of version 2 ("0::/user.slice/job1"), or of version 1
// ("4:memory:/job1"). Where a machine has both, the second is the one that counts memory.
std::string file_of_control_group() {
  std::istringstream lines(read_file("/proc/self/cgroup"));
  std::string file;
  for (std::string line; std::getline(lines, line);) {
    const std::string path = line.substr(line.rfind(':') + 1);
    if (line.starts_with("0::") && file.empty()) file = "/sys/fs/cgroup" + path + "/memory.events";
    if (line.find(":memory:") != std::string::npos) file = "/sys/fs/cgroup/memory" + path + "/memory.oom_control";
  }
  return file;
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
  if (const auto ours = parse_memory_kills(read_file(file_of_control_group()))) return *ours;
  return parse_memory_kills(read_file("/proc/vmstat")).value_or(0);
}

}  // namespace fedrun::launcher
