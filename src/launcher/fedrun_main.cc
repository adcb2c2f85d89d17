// The fedrun command: reads what the user wants, plans, and lets supervise run mpirun.
#include <fedrun/core/error.h>
#include <fedrun/core/version.h>
#include <fedrun/launcher/check_build.h>
#include <fedrun/launcher/completion.h>
#include <fedrun/launcher/gpu_mapping.h>
#include <fedrun/launcher/help.h>
#include <fedrun/launcher/man_page.h>
#include <fedrun/launcher/mpirun_command.h>
#include <fedrun/launcher/options.h>
#include <fedrun/launcher/placement.h>
#include <fedrun/launcher/program.h>
#include <fedrun/launcher/rank_environment.h>
#include <fedrun/launcher/requested_hosts.h>
#include <fedrun/launcher/run_table.h>
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

std::vector<int> mapped_gpus(const Options& options, const std::vector<RankPlace>& places) {
  if (!options.gpu_mapping_file) return {};
  return gpus_of_ranks(
      read_gpu_mapping(*options.gpu_mapping_file, options.gpu_mapping_key.value_or(std::string(default_mapping_key))),
      places);
}

// A build without CUDA has no use for GPUs.
int gpus_here() { return build_facts().cuda.empty() ? 0 : count_gpus(variable); }

// Where each rank will run. On other hosts, only a mapping knows about GPUs.
RunPlan run_plan(const Options& options, const Launch& launch) {
  RunPlan run{.ranks = ranks_in_order(launch.placement), .binding = options.binding};
  run.gpus = mapped_gpus(options, run.ranks);
  if (run.gpus.empty() && launch.placement.on_this_machine()) run.gpus = gpus_of_ranks(gpus_here(), run.ranks);
  return run;
}

Launch plan(const Options& options) {
  Launch launch;
  launch.placement = place(options.ranks, requested_hosts(options, variable).hosts, gpus_here());
  launch.variables = rank_environment(options, launch.placement, terminal_columns(), variable,
                                      mapped_gpus(options, ranks_in_order(launch.placement)));
  launch.program = options.program;
  launch.as_root = geteuid() == 0;
  launch.mca_parameters = mca_parameters_in_environment();
  return launch;
}

int run(const Options& options) {
  const Launch launch = plan(options);
  const MpirunCommand command = make_mpirun_command(launch);
  if (options.dry_run || options.verbose) fmt::print(stderr, "{}", run_table(run_plan(options, launch)));
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
  if (options.verbose) fmt::print(stderr, "fedrun: {}\n", to_shell(command));
  return supervise(command, {.show_mpirun_messages = options.verbose});
}

int act(const std::vector<std::string>& arguments) {
  const Options options = parse_options(arguments);
  switch (options.action) {
    case Action::launch:
      return run(options);
    case Action::completion:
      fmt::print("{}", completion_script(options.completion_shell));
      break;
    case Action::man_page:
      fmt::print("{}", man_page());
      break;
    case Action::check:
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
