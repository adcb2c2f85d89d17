#include <fedrun/core/error.h>
#include <fedrun/core/parse.h>
#include <fedrun/core/run_env.h>
#include <fedrun/launcher/options.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace fedrun::launcher {
namespace {

constexpr int most_ranks = 65536;

// One row tells the parser and --help all about a flag. No flag library reads what mpirun's users type: -np has one
// dash and two letters, and the flags end where the program begins.
struct Flag {
  const char* group;
  const char* names;     // every spelling, separated by spaces
  const char* value;     // what --help calls it; nullptr: the flag takes none
  const char* help;      // nullptr: see `variable`
  const char* variable;  // the FEDRUN_* variable that the flag sets; its row in run_variables() has the help
  void (*apply)(Options& options, std::string_view value);
};

constexpr Flag flags[] = {
    {"Where to run", "-np -n --np --num-proc", "N", "number of ranks; default: one per slot of the hosts, else 1",
     nullptr,
     [](Options& options, std::string_view value) { options.ranks = parse_integer<int>(value, 1, most_ranks); }},
    {"Where to run", "-H --host --hosts", "LIST", "hosts and their slots, such as a:2,b:2; default: this machine",
     nullptr, [](Options& options, std::string_view value) { options.hosts = value; }},
    {"Where to run", "--hostfile", "FILE", "hosts one per line: 'a slots=2', 'a:2' or 'a'; # begins a comment", nullptr,
     [](Options& options, std::string_view value) { options.hostfile = value; }},

    {"What the ranks get", "-x", "NAME[=VALUE]", "pass an environment variable to every rank; may be repeated", nullptr,
     [](Options& options, std::string_view value) { options.pass.emplace_back(value); }},
    {"What the ranks get", "--log-level", "LEVEL", nullptr, "FEDRUN_LOG_LEVEL", nullptr},
    {"What the ranks get", "--backend", "NAME", nullptr, "FEDRUN_BACKEND", nullptr},
    {"What the ranks get", "--device", "NAME", nullptr, "FEDRUN_DEVICE", nullptr},
    {"What the ranks get", "--threads", "N", nullptr, "FEDRUN_THREADS", nullptr},
    {"What the ranks get", "--timeline", "FILE", nullptr, "FEDRUN_TIMELINE", nullptr},
    {"What the ranks get", "--stall-warn", "SECONDS", nullptr, "FEDRUN_STALL_WARN_SECONDS", nullptr},
    {"What the ranks get", "--stall-abort", "SECONDS", nullptr, "FEDRUN_STALL_ABORT_SECONDS", nullptr},

    {"What fedrun shows", "--verbose", nullptr, "show the mpirun command and all that mpirun says", nullptr,
     [](Options& options, std::string_view) { options.verbose = true; }},
    {"What fedrun shows", "--dry-run", nullptr, "print the mpirun command and start nothing", nullptr,
     [](Options& options, std::string_view) { options.dry_run = true; }},
    {"What fedrun shows", "--check-build", nullptr, "what this build and this machine can do, and remedies", nullptr,
     [](Options& options, std::string_view) { options.action = Action::check_build; }},
    {"What fedrun shows", "--version", nullptr, "the version of fedrun", nullptr,
     [](Options& options, std::string_view) { options.action = Action::show_version; }},
    {"What fedrun shows", "-h --help", nullptr, "this text", nullptr,
     [](Options& options, std::string_view) { options.action = Action::show_help; }},
};

bool has_name(const Flag& flag, std::string_view name) {
  std::string_view names = flag.names;
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    if (names.substr(0, end) == name) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

const Flag& find_flag(std::string_view name) {
  for (const Flag& flag : flags) {
    if (has_name(flag, name)) return flag;
  }
  throw UsageError(fmt::format(
      "unknown option '{}'; options of your program go after its name: fedrun -np 2 ./train {}", name, name));
}

const RunVariable& find_variable(std::string_view name) {
  const auto variables = run_variables();
  return *std::find_if(variables.begin(), variables.end(), [&](const RunVariable& row) { return row.name == name; });
}

void apply(const Flag& flag, std::string_view name, std::string_view value, Options& options) {
  try {
    if (flag.variable == nullptr) return flag.apply(options, value);
    RunEnv scratch;  // checked here already, so that the error names the flag
    find_variable(flag.variable).parse(scratch, value);
    options.settings.emplace_back(flag.variable, value);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", name, error.what()));
  }
}

void require_consistent(const Options& options) {
  if (options.action != Action::launch) return;
  if (options.hosts && options.hostfile) throw UsageError("give the hosts by -H or by --hostfile, not by both");
  if (options.program.empty()) throw UsageError("which program shall run? For example: fedrun -np 2 ./train --lr 0.1");
  if (options.program[0].empty() || options.program[0][0] == '-') {
    throw UsageError(
        fmt::format("'{}' is no name for a program; if it is one, write ./{}", options.program[0], options.program[0]));
  }
}

std::string two_columns(std::string_view left, std::string_view right) {
  constexpr size_t width = 30;
  if (left.size() <= width) return fmt::format("  {:{}}  {}\n", left, width, right);
  return fmt::format("  {}\n  {:{}}  {}\n", left, "", width, right);
}

std::string help_line(const Flag& flag) {
  std::string left = flag.names;
  for (size_t space = left.find(' '); space != std::string::npos; space = left.find(' ', space + 2)) {
    left.replace(space, 1, ", ");
  }
  if (flag.value != nullptr) left += fmt::format(" {}", flag.value);
  if (flag.variable == nullptr) return two_columns(left, flag.help);
  const RunVariable& variable = find_variable(flag.variable);
  return two_columns(left, fmt::format("{} ({})", variable.meaning, variable.values));
}

}  // namespace

Options parse_options(std::span<const std::string> arguments) {
  Options options;
  size_t next = 0;
  while (next < arguments.size() && arguments[next].starts_with('-')) {
    const std::string_view word = arguments[next++];
    if (word == "--") break;
    const size_t equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
    const std::string_view name = word.substr(0, equals);
    const Flag& flag = find_flag(name);
    std::string_view value;
    if (flag.value == nullptr) {
      if (equals != std::string_view::npos) throw UsageError(fmt::format("{} takes no value", name));
    } else if (equals != std::string_view::npos) {
      value = word.substr(equals + 1);
    } else {
      if (next == arguments.size()) throw UsageError(fmt::format("{} needs a value: {} {}", name, name, flag.value));
      value = arguments[next++];
    }
    apply(flag, name, value, options);
  }
  options.program.assign(arguments.begin() + static_cast<std::ptrdiff_t>(next), arguments.end());
  require_consistent(options);
  return options;
}

std::string help_text() {
  std::string text =
      "Usage: fedrun [OPTIONS] PROGRAM [ARGUMENTS...]\n"
      "\n"
      "Runs PROGRAM as several ranks, on this machine or on several hosts, over Open MPI's mpirun.\n"
      "Options stand before PROGRAM; everything from PROGRAM on reaches it unchanged.\n"
      "\n"
      "Examples:\n"
      "  fedrun -np 2 ./train --lr 0.1             two ranks on this machine\n"
      "  fedrun -np 4 -H a:2,b:2 ./train           two ranks each on the hosts a and b\n"
      "  fedrun --hostfile hosts.txt ./train       as many ranks as the file has slots\n"
      "  fedrun -np 2 --threads 4 -x OMP_PROC_BIND=true ./train\n";
  std::string_view group;
  for (const Flag& flag : flags) {
    if (group != flag.group) text += fmt::format("\n{}:\n", group = flag.group);
    text += help_line(flag);
  }
  text += "\nEnvironment variables, which options override:\n";
  for (const RunVariable& variable : run_variables()) {
    text += two_columns(variable.name,
                        fmt::format("{} ({}; default: {})", variable.meaning, variable.values, variable.fallback));
  }
  text +=
      "\nExit code: the program's; 128 + n when signal n ended it; 127 or 126 when it was not found or is not\n"
      "executable; 2 for a wrong command line.\n";
  return text;
}

}  // namespace fedrun::launcher
