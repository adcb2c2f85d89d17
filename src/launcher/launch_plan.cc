#include <fedrun/core/error.h>
#include <fedrun/launcher/gpu_mapping.h>
#include <fedrun/launcher/launch_plan.h>
#include <fedrun/launcher/prepare_hosts.h>
#include <fedrun/launcher/rank_environment.h>
#include <fedrun/launcher/requested_hosts.h>
#include <fedrun/launcher/slurm.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

namespace fedrun::launcher {
namespace {

const char* variable(const char* name) { return std::getenv(name); }

RunDisplay::Options display_options(const Options& options) {
  RunDisplay::Options display;
  display.prefix = options.prefix;
  display.timestamps = options.timestamps;
  display.show_all = options.verbose;
  display.output_directory = options.output_directory;
  return display;
}

// What a rank may fill of a line.
int terminal_columns(const Options& options, int ranks) {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;  // not a terminal
  const int taken = Screen::prefix_columns(RunDisplay::screen_style(display_options(options), ranks));
  return std::clamp(size.ws_col - taken, 0, 10000);
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

// A rank that somebody looks at takes its time, and the others wait for it.
void allow_for_debugging(Options& options, int ranks) {
  if (!options.debug_rank) return;
  if (*options.debug_rank >= ranks) {
    throw UsageError(fmt::format("--debug-rank {}: the run has the ranks 0 to {}", *options.debug_rank, ranks - 1));
  }
  options.settings.emplace_back("FEDRUN_STALL_ABORT_SECONDS", "0");
}

std::vector<int> mapped_gpus(const Options& options, const std::vector<RankPlace>& places) {
  if (!options.gpu_mapping_file) return {};
  return gpus_of_ranks(
      read_gpu_mapping(*options.gpu_mapping_file, options.gpu_mapping_key.value_or(std::string(default_mapping_key))),
      places);
}

}  // namespace

std::string search_path() {
  const char* path = variable("PATH");
  return path != nullptr ? path : "/bin:/usr/bin";
}

std::string path_of_this_command() {
  std::error_code problem;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", problem);
  if (problem) throw BackendError(fmt::format("cannot find out the path of fedrun: {}", problem.message()));
  return path.string();
}

Placement plan_placement(const Options& options, int gpus) {
  return place(options.ranks, requested_hosts(options, variable).hosts, gpus);
}

Launch plan_launch(Options options, int gpus) {
  Launch launch;
  const RequestedHosts requested = requested_hosts(options, variable);
  launch.placement = place(options.ranks, requested.hosts, gpus);
  launch.hosts_from_slurm = requested.source == HostSource::slurm;
  launch.ignores_slurm = !launch.hosts_from_slurm && in_slurm_allocation(variable);
  allow_for_debugging(options, launch.placement.ranks);
  launch.variables = rank_environment(options, launch.placement, terminal_columns(options, launch.placement.ranks),
                                      variable, mapped_gpus(options, ranks_in_order(launch.placement)));
  launch.fedrun = path_of_this_command();
  launch.keeper.binding = options.binding;
  launch.keeper.debug_rank = options.debug_rank;
  launch.keeper.debugger = options.debugger;
  launch.keeper.program = options.program;
  launch.as_root = geteuid() == 0;
  launch.remote_parameters = remote_shell(options, variable).open_mpi_parameters();
  launch.network = options.network_interfaces.value_or("");
  launch.mpi_arguments = options.mpi_arguments;
  launch.mca_parameters = mca_parameters_in_environment();
  return launch;
}

RunPlan plan_ranks(const Options& options, const Launch& launch, int gpus) {
  RunPlan plan;
  plan.ranks = ranks_in_order(launch.placement);
  plan.binding = options.binding;
  plan.gpus = mapped_gpus(options, plan.ranks);
  // On other hosts, only a mapping knows about GPUs.
  if (plan.gpus.empty() && launch.placement.on_this_machine()) plan.gpus = gpus_of_ranks(gpus, plan.ranks);
  return plan;
}

Supervision plan_supervision(const Options& options, const Launch& launch) {
  Supervision supervision;
  for (const RankPlace& place : ranks_in_order(launch.placement)) supervision.hosts.push_back(place.host);
  supervision.display = display_options(options);
  supervision.show_mpirun_messages = options.verbose;
  supervision.start_timeout = options.start_timeout;
  supervision.timeout = options.timeout;
  supervision.keeper = launch.keeper;
  return supervision;
}

}  // namespace fedrun::launcher
