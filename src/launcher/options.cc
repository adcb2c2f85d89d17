#include <fedrun/core/error.h>
#include <fedrun/launcher/flag_table.h>
#include <fedrun/launcher/nearest_name.h>
#include <fedrun/launcher/options.h>
#include <fedrun/launcher/refused_flags.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace fedrun::launcher {
namespace {

struct GivenFlag {
  const Flag* flag;
  std::string name;  // as it was spelt
  std::string value;
};

struct CommandLine {
  bool only_check = false;
  std::vector<GivenFlag> flags;
  std::vector<std::string> program;
};

std::string_view without_dashes(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

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

std::string_view subject_of(const Flag& flag) { return flag.subject != nullptr ? flag.subject : flag.names; }

void require_no_contradiction(const std::vector<GivenFlag>& flags) {
  for (const GivenFlag& one : flags) {
    for (const GivenFlag& other : flags) {
      if (one.flag != other.flag && subject_of(*one.flag) == subject_of(*other.flag)) {
        throw UsageError(fmt::format("give {} or {}, not both", one.name, other.name));
      }
    }
  }
}

void require_what_they_need(const std::vector<GivenFlag>& flags) {
  for (const GivenFlag& given : flags) {
    if (given.flag->needs == nullptr) continue;
    const Flag* needed = find_flag(given.flag->needs);
    const bool is_there =
        std::any_of(flags.begin(), flags.end(), [&](const GivenFlag& other) { return other.flag == needed; });
    if (!is_there) throw UsageError(fmt::format("{} does nothing without {}", given.name, given.flag->needs));
  }
}

void require_program_name(const std::vector<std::string>& program) {
  if (program[0].empty() || program[0][0] == '-') {
    throw UsageError(fmt::format("'{}' is no name for a program; if it is one, write ./{}", program[0], program[0]));
  }
}

void require_consistent(const Options& options) {
  if (options.action != Action::launch && options.action != Action::check) return;
  if (options.debug_rank && options.ranks && *options.debug_rank >= *options.ranks) {
    throw UsageError(
        fmt::format("--debug-rank {}: the run has the ranks 0 to {}", *options.debug_rank, *options.ranks - 1));
  }
  if (!options.program.empty()) return require_program_name(options.program);
  if (options.action == Action::launch) {
    throw UsageError("which program shall run? For example: fedrun -np 2 ./train --lr 0.1");
  }
}

}  // namespace

Options parse_options(std::span<const std::string> arguments) {
  CommandLine line = read_command_line(arguments);
  Options options;
  if (line.only_check) options.action = Action::check;
  for (const GivenFlag& given : line.flags) apply(*given.flag, given.name, given.value, options);
  options.program = std::move(line.program);
  require_no_contradiction(line.flags);
  require_what_they_need(line.flags);
  require_consistent(options);
  return options;
}

}  // namespace fedrun::launcher
