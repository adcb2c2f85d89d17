#include <fedrun/core/error.h>
#include <fedrun/launcher/command_line.h>
#include <fedrun/launcher/config_file.h>
#include <fedrun/launcher/flag.h>
#include <fedrun/launcher/options.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace fedrun::launcher {
namespace {

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
  if (options.gpu_mapping_file &&
      std::find(options.settings.begin(), options.settings.end(),
                std::pair<std::string, std::string>("FEDRUN_DEVICE", "cpu")) != options.settings.end()) {
    throw UsageError("--gpu-mapping says which GPU each rank gets, and --device cpu that it gets none: leave one out");
  }
  if (!options.program.empty()) return require_program_name(options.program);
  if (options.action == Action::launch) {
    throw UsageError("which program shall run? For example: fedrun -np 2 ./train --lr 0.1");
  }
}

// -x NAME, or -x NAME=VALUE
std::string_view passed_name(std::string_view text) { return text.substr(0, text.find('=')); }

// The file's flags that the command line leaves in force. Variables count one by one, other flags by their subject.
std::vector<GivenFlag> not_overridden(std::vector<GivenFlag> from_file, const CommandLine& line, const Options& given) {
  const Flag* pass = find_flag("-x");
  const auto is_overridden = [&](const GivenFlag& in_file) {
    if (in_file.flag != pass) {
      return std::any_of(line.flags.begin(), line.flags.end(),
                         [&](const GivenFlag& here) { return subject_of(*here.flag) == subject_of(*in_file.flag); });
    }
    const std::string_view name = passed_name(in_file.value);
    return std::any_of(given.pass.begin(), given.pass.end(),
                       [&](const std::string& text) { return passed_name(text) == name; }) ||
           std::any_of(given.settings.begin(), given.settings.end(),
                       [&](const auto& setting) { return setting.first == name; });
  };
  std::erase_if(from_file, is_overridden);
  return from_file;
}

Options apply_all(const std::vector<GivenFlag>& flags, Action action) {
  Options options;
  options.action = action;
  for (const GivenFlag& given : flags) apply(*given.flag, given.name, given.value, options);
  return options;
}

}  // namespace

Options parse_options(std::span<const std::string> arguments) {
  CommandLine line = read_command_line(arguments);
  const Action action = line.only_check ? Action::check : Action::launch;
  Options options = apply_all(line.flags, action);
  require_no_contradiction(line.flags);
  std::vector<GivenFlag> flags;
  if (options.config_file && options.action == action) {
    const std::vector<GivenFlag> from_file = read_config(*options.config_file);
    require_no_contradiction(from_file);
    flags = not_overridden(from_file, line, options);
  }
  flags.insert(flags.end(), line.flags.begin(), line.flags.end());
  require_what_they_need(flags);
  options = apply_all(flags, action);
  options.program = std::move(line.program);
  require_consistent(options);
  return options;
}

}  // namespace fedrun::launcher
