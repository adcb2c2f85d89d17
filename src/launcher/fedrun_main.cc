// The fedrun command: reads what the user wants, plans, and lets supervise run mpirun.
#include <fedrun/core/error.h>
#include <fedrun/core/version.h>
#include <fedrun/launcher/bench_command.h>
#include <fedrun/launcher/check_build.h>
#include <fedrun/launcher/check_table.h>
#include <fedrun/launcher/completion.h>
#include <fedrun/launcher/gpu_mapping.h>
#include <fedrun/launcher/help.h>
#include <fedrun/launcher/launch_plan.h>
#include <fedrun/launcher/man_page.h>
#include <fedrun/launcher/prepare_hosts.h>
#include <fedrun/launcher/program.h>
#include <fedrun/launcher/rank_keeper.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "build_facts.h"

namespace fedrun::launcher {
namespace {

constexpr int exit_usage = 2;
constexpr int exit_failure = 1;

const char* variable(const char* name) { return std::getenv(name); }

// A build without CUDA has no use for GPUs.
int gpus_here() { return build_facts().cuda.empty() ? 0 : count_gpus(variable); }

int check(const Options& options) {
  const PreflightResult result = check_hosts(options, plan_placement(options, gpus_here()).hosts, variable);
  fmt::print("{}", check_table(result));
  return result.passed ? EXIT_SUCCESS : exit_failure;
}

int run(const Options& options) {
  Launch launch = plan_launch(options, gpus_here());
  if (options.dry_run || options.verbose) fmt::print(stderr, "{}", run_table(plan_ranks(options, launch, gpus_here())));
  if (options.dry_run) {
    fmt::print("{}\n", to_shell(make_mpirun_command(launch)));
    return EXIT_SUCCESS;
  }
  if (launch.placement.on_this_machine()) {
    if (const auto problem = find_problem(options.program[0], search_path())) {
      fmt::print(stderr, "fedrun: {}\n", problem->message);
      return problem->exit_code;
    }
  }
  if (find_problem("mpirun", search_path())) {
    throw BackendError("mpirun is not on PATH: run scripts/setup.sh, or install the Debian package openmpi-bin");
  }
  if (!launch.placement.on_this_machine() && !launch.hosts_from_slurm) {
    launch.network = prepare_hosts(options, launch.placement.hosts, variable);
  }
  if (options.verbose) fmt::print(stderr, "fedrun: {}\n", to_shell(make_mpirun_command(launch)));
  launch.keeper.framed = true;
  return supervise(make_mpirun_command(launch), plan_supervision(options, launch));
}

int act(const std::vector<std::string>& arguments) {
  const Options options = parse_options(arguments);
  switch (options.action) {
    case Action::launch:
      return run(options);
    case Action::check:
      return check(options);
    case Action::completion:
      fmt::print("{}", completion_script(options.completion_shell));
      break;
    case Action::man_page:
      fmt::print("{}", man_page());
      break;
    case Action::show_help:
      fmt::print("{}", help_text());
      break;
    case Action::show_version:
      fmt::print("fedrun {}\n", version);
      break;
    case Action::check_build:
      fmt::print("{}", check_build_text(build_facts(), examine_machine(count_gpus(variable))));
      break;
  }
  return EXIT_SUCCESS;
}

int act_or_explain(const std::vector<std::string>& arguments) {
  try {
    if (!arguments.empty() && arguments[0] == keeper_command) return keep_rank(parse_keeper_options(arguments));
    if (!arguments.empty() && arguments[0] == bench_command) become_bench_suite(arguments);
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
