#include <fedrun/core/error.h>
#include <fedrun/launcher/command_line.h>
#include <fedrun/launcher/flag_table.h>
#include <fedrun/launcher/nearest_name.h>
#include <fedrun/launcher/refused_flags.h>
#include <fmt/format.h>

#include <algorithm>

namespace fedrun::launcher {
namespace {

std::string_view without_dashes(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

const Flag& require_flag(std::string_view name) {
  if (const Flag* flag = find_flag(name)) return *flag;
  if (const RefusedFlag* refused = find_refused_flag(name)) {
    throw UsageError(fmt::format("{}: {}", name, refused->reason));
  }
  const auto nearest = nearest_flag(name);
  throw UsageError(
      fmt::format("unknown option '{}'{} options of your program go after its name: fedrun -np 2 ./train {}", name,
                  nearest ? fmt::format(": did you mean {}? Otherwise:", *nearest) : ";", name));
}

}  // namespace

std::optional<std::string_view> nearest_flag(std::string_view name) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> words;
  for (const Flag& flag : flag_table()) {
    for (const std::string_view known : all_names(flag)) {
      names.push_back(known);
      words.push_back(without_dashes(known));
    }
  }
  const auto nearest = nearest_name(without_dashes(name), words);
  if (!nearest) return std::nullopt;
  return names[static_cast<size_t>(std::find(words.begin(), words.end(), *nearest) - words.begin())];
}

CommandLine read_command_line(std::span<const std::string> arguments) {
  CommandLine line;
  line.only_check = !arguments.empty() && arguments[0] == "check";
  size_t next = line.only_check ? 1 : 0;
  while (next < arguments.size() && arguments[next].starts_with('-')) {
    const std::string_view word = arguments[next++];
    if (word == "--") break;
    const size_t equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
    const std::string_view name = word.substr(0, equals);
    const Flag& flag = require_flag(name);
    std::string_view value;
    if (flag.value == nullptr) {
      if (equals != std::string_view::npos) throw UsageError(fmt::format("{} takes no value", name));
    } else if (equals != std::string_view::npos) {
      value = word.substr(equals + 1);
    } else {
      if (next == arguments.size()) throw UsageError(fmt::format("{} needs a value: {} {}", name, name, flag.value));
      value = arguments[next++];
    }
    line.flags.push_back({&flag, std::string(name), std::string(value)});
  }
  line.program.assign(arguments.begin() + static_cast<std::ptrdiff_t>(next), arguments.end());
  return line;
}

}  // namespace fedrun::launcher
