#include <fedrun/core/error.h>
#include <fedrun/core/parse.h>
#include <fedrun/launcher/keeper_options.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace fedrun::launcher {
namespace {

// mpirun 4.1 also looks for these among the arguments of the program: a colon begins a second program, and parameters
// go to the other hosts through a shell that would execute them.
bool mpirun_would_read(std::string_view argument) {
  if (argument == ":") return true;
  if (!argument.starts_with('-')) return false;
  argument.remove_prefix(argument.starts_with("--") ? 2 : 1);
  return argument == "tune" || argument == "am" || argument.ends_with("mca");
}

}  // namespace

std::vector<std::string> to_arguments(const KeeperOptions& options) {
  std::vector<std::string> arguments = {keeper_command};
  if (options.framed) arguments.emplace_back("--framed");
  if (options.binding != Binding::none) {
    arguments.insert(arguments.end(), {"--bind", options.binding == Binding::core ? "core" : "socket"});
  }
  if (options.debug_rank) {
    arguments.insert(arguments.end(), {options.debugger == Debugger::gdb ? "--gdb" : "--gdbserver",
                                       fmt::format("{}", *options.debug_rank)});
  }
  const bool hidden = std::any_of(options.program.begin(), options.program.end(), mpirun_would_read);
  arguments.emplace_back(hidden ? "--hidden" : "--");
  for (const std::string& word : options.program) arguments.push_back(hidden ? "=" + word : word);
  return arguments;
}

KeeperOptions parse_keeper_options(std::span<const std::string> arguments) {
  KeeperOptions options;
  size_t next = 1;
  const auto value = [&]() -> const std::string& {
    if (next == arguments.size()) throw UsageError(fmt::format("{} needs a value", arguments[next - 1]));
    return arguments[next++];
  };
  while (next < arguments.size()) {
    const std::string& word = arguments[next++];
    if (word == "--framed") {
      options.framed = true;
    } else if (word == "--bind") {
      options.binding = parse_word<Binding>(value(), {{"core", Binding::core}, {"socket", Binding::socket}});
    } else if (word == "--gdb" || word == "--gdbserver") {
      options.debugger = word == "--gdb" ? Debugger::gdb : Debugger::gdbserver;
      options.debug_rank = parse_integer<int>(value(), 0, 1'000'000);
    } else if (word == "--" || word == "--hidden") {
      const size_t skipped = word == "--hidden" ? 1 : 0;
      for (; next < arguments.size(); ++next) options.program.push_back(arguments[next].substr(skipped));
    } else {
      throw UsageError(
          fmt::format("{}: '{}' is not understood; it is fedrun itself that calls it", keeper_command, word));
    }
  }
  if (options.program.empty()) throw UsageError(fmt::format("{} needs a program", keeper_command));
  return options;
}

}  // namespace fedrun::launcher
