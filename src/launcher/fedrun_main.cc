// The fedrun command: reads what the user wants, plans, and lets supervise run mpirun.
#include <fedrun/core/error.h>
#include <fedrun/core/version.h>
#include <fedrun/launcher/check_build.h>
#include <fedrun/launcher/check_table.h>
#include <fedrun/launcher/help.h>
#include <fedrun/launcher/hosts.h>
#include <fedrun/launcher/mpirun_command.h>
#include <fedrun/launcher/options.h>
#include <fedrun/launcher/placement.h>
#include <fedrun/launcher/prepare_hosts.h>
#include <fedrun/launcher/program.h>
#include <fedrun/launcher/rank_environment.h>
#include <fedrun/launcher/supervise.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "build_facts.h"

namespace fedrun::launcher {
namespace {

constexpr int exit_usage = 2;
constexpr int exit_failure = 1;

std::vector<Host> requested_hosts(const Options& options) {
  if (options.hosts) return parse_hosts(*options.hosts, options.slots_per_host);
  if (options.hostfile) return read_hostfile(*options.hostfile, options.slots_per_host);
  return {};
}

int terminal_columns() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;  // not a terminal
  return std::min<int>(size.ws_col, 10000);
}

std::set<std::string> mca_parameters_in_environment() {
  constexpr std::string_view prefix = "OMPI_MCA_";
  std::set<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with(prefix)) names.emplace(text.substr(prefix.size(), text.find('=') - prefix.size()));
  }
  return names;
}

const char* variable(const char* name) { return std::getenv(name); }

std::string search_path() {
  const char* path = variable("PATH");
  return path != nullptr ? path : "/bin:/usr/bin";  // execvp's own default
}

Launch plan(const Options& options) {
  Launch launch;
  launch.placement = place(options.ranks, requested_hosts(options));
  launch.variables = rank_environment(options, launch.placement, terminal_columns(), variable);
  launch.program = options.program;
  launch.as_root = geteuid() == 0;
  launch.mca_parameters = mca_parameters_in_environment();
  return launch;
}

// Readies the hosts and tells Open MPI the way to them. What the user has set by OMPI_MCA_* stays.
void reach_hosts(const Options& options, const Launch& launch, MpirunCommand& command) {
  auto parameters = remote_shell(options, variable).open_mpi_parameters();
  const std::string network = prepare_hosts(options, launch.placement.hosts, variable);
  if (!network.empty()) {
    parameters.emplace_back("btl_tcp_if_include", network);
    parameters.emplace_back("oob_tcp_if_include", network);
  }
  for (const auto& [name, value] : parameters) {
    if (!launch.mca_parameters.contains(name)) command.environment.emplace_back("OMPI_MCA_" + name, value);
  }
}

int run(const Options& options) {
  const Launch launch = plan(options);
  MpirunCommand command = make_mpirun_command(launch);
  if (options.dry_run) {
    fmt::print("{}\n", to_shell(command));
    return EXIT_SUCCESS;
  }
  if (launch.placement.on_this_machine()) {
    if (const auto problem = find_problem(launch.program[0], search_path())) {
      fmt::print(stderr, "fedrun: {}\n", problem->message);
      return problem->exit_code;
    }
  }
  if (find_problem("mpirun", search_path())) {
    throw BackendError("mpirun is not on PATH: run scripts/setup.sh, or install the Debian package openmpi-bin");
  }
  if (!launch.placement.on_this_machine()) reach_hosts(options, launch, command);
  if (options.verbose) fmt::print(stderr, "fedrun: {}\n", to_shell(command));
  return supervise(command, {.show_mpirun_messages = options.verbose});
}

int check(const Options& options) {
  const PreflightResult result = check_hosts(options, requested_hosts(options), variable);
  fmt::print("{}", check_table(result));
  return result.passed ? EXIT_SUCCESS : exit_failure;
}

int act(const std::vector<std::string>& arguments) {
  const Options options = parse_options(arguments);
  switch (options.action) {
    case Action::launch:
      return run(options);
    case Action::check:
      return check(options);
    case Action::completion:
    case Action::man_page:
      throw UsageError("this build of fedrun cannot do that yet");
    case Action::show_help:
      fmt::print("{}", help_text());
      break;
    case Action::show_version:
      fmt::print("fedrun {}\n", version);
      break;
    case Action::check_build:
      fmt::print("{}", check_build_text(build_facts(), examine_machine()));
      break;
  }
  return EXIT_SUCCESS;
}

int act_or_explain(const std::vector<std::string>& arguments) {
  try {
    return act(arguments);
  } catch (const UsageError& error) {
    fmt::print(stderr, "fedrun: {}\ntry 'fedrun --help'\n", error.what());
    return exit_usage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "fedrun: {}\n", error.what());
    return exit_failure;
  }
}

}  // namespace
}  // namespace fedrun::launcher

int main(int argc, char** argv) { return fedrun::launcher::act_or_explain({argv + 1, argv + argc}); }
