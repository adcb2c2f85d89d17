#include <fedrun/core/error.h>
#include <fedrun/core/parse.h>
#include <fedrun/launcher/hosts.h>
#include <fedrun/launcher/split_list.h>
#include <fedrun/launcher/text_file.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <optional>

namespace fedrun::launcher {
namespace {

constexpr int most_slots = 65536;
constexpr std::string_view blanks = " \t\r";

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

int checked_slots(std::string_view text) {
  try {
    return parse_integer<int>(text, 1, most_slots);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("number of slots: {}", error.what()));
  }
}

// "a" or "a:2"; the slots are absent when the text does not give them.
std::pair<std::string, std::optional<int>> parse_host(std::string_view text) {
  const bool has_slots = text[0] != '[' && std::count(text.begin(), text.end(), ':') == 1;
  if (!has_slots) return {checked_host_name(text), std::nullopt};
  const size_t colon = text.find(':');
  return {checked_host_name(text.substr(0, colon)), checked_slots(text.substr(colon + 1))};
}

void add(std::vector<Host>& hosts, const std::string& name, int slots) {
  const auto known = std::find_if(hosts.begin(), hosts.end(), [&](const Host& host) { return host.name == name; });
  if (known == hosts.end()) {
    hosts.push_back({name, slots});
  } else {
    known->slots = std::min(known->slots + slots, most_slots);
  }
}

void add_line(std::vector<Host>& hosts, std::string_view line, int default_slots) {
  const size_t name_end = std::min(line.find_first_of(blanks), line.size());
  auto [name, slots] = parse_host(line.substr(0, name_end));
  const std::string_view rest = trim(line.substr(name_end));
  if (!rest.empty()) {
    if (slots || !rest.starts_with("slots=")) {
      throw UsageError(fmt::format("'{}' is not understood: a line is 'host', 'host:N' or 'host slots=N'", line));
    }
    slots = checked_slots(rest.substr(std::string_view("slots=").size()));
  }
  add(hosts, name, slots.value_or(default_slots));
}

}  // namespace

std::string checked_host_name(std::string_view name) {
  if (name.empty()) throw UsageError("a host name is missing");
  if (name[0] == '[' || std::count(name.begin(), name.end(), ':') > 0) {
    throw UsageError(fmt::format(
        "'{}' looks like an IPv6 address, which Open MPI does not take: give the host a name in DNS or /etc/hosts",
        name));
  }
  const bool harmless = std::all_of(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; });
  if (!harmless || name[0] == '-') {
    throw UsageError(
        fmt::format("'{}' is no host name: letters, digits, '.', '_' and '-' only, and no '-' in front", name));
  }
  return std::string(name);
}

std::vector<Host> parse_hosts(std::string_view list, int default_slots) {
  std::vector<Host> hosts;
  try {
    for (const std::string_view part : split_list(list, ',')) {
      const std::string_view item = trim(part);
      if (item.empty()) throw UsageError("a host name is missing");
      const auto [name, slots] = parse_host(item);
      add(hosts, name, slots.value_or(default_slots));
    }
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("hosts '{}': {}; write them as a:2,b:2", list, error.what()));
  }
  return hosts;
}

std::vector<Host> parse_hostfile(std::string_view text, std::string_view file, int default_slots) {
  std::vector<Host> hosts;
  int line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, std::min(text.find('#'), end)));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    try {
      add_line(hosts, line, default_slots);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}:{}: {}", file, line_number, error.what()));
    }
  }
  if (hosts.empty())
    throw UsageError(fmt::format("{} names no host: a line is 'host', 'host:N' or 'host slots=N'", file));
  return hosts;
}

std::vector<Host> read_hostfile(const std::filesystem::path& file, int default_slots) {
  return parse_hostfile(read_text_file(file, "the host file"), file.string(), default_slots);
}

bool is_this_machine(const Host& host) {
  if (host.name == "localhost" || host.name.starts_with("127.")) return true;
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, HOST_NAME_MAX);
  const std::string_view full = name;
  return host.name == full || host.name == full.substr(0, full.find('.'));
}

}  // namespace fedrun::launcher
