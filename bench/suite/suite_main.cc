// fedrun bench: measures everything that the user asks for, one launch after the other, and writes one page about it.
#include <fedrun/core/error.h>
#include <fedrun/launcher/gpu_mapping.h>
#include <fedrun/launcher/launch_plan.h>
#include <fedrun/launcher/placement.h>
#include <fedrun/launcher/shell_words.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "build_facts.h"
#include "options.h"
#include "results.h"
#include "runner.h"

namespace fedrun::bench::suite {
namespace {

namespace fs = std::filesystem;

constexpr int exit_usage = 2;
constexpr int exit_failure = 1;
constexpr int most_ranks_by_default = 8;

const char* variable(const char* name) { return std::getenv(name); }

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Programs programs_here() {
  const fs::path directory = fs::path(launcher::path_of_this_command()).parent_path();
  return {directory,
          [directory](const std::string& program) { return access((directory / program).c_str(), X_OK) == 0; }};
}

// cuda, where there are GPUs and nobody says otherwise.
void choose_device(const Options& options, Site& site) {
  const bool has_cuda = !launcher::build_facts().cuda.empty();
  const char* in_environment = variable("FEDRUN_DEVICE");
  std::string asked = in_environment != nullptr ? in_environment : "auto";
  for (const auto& [name, value] : options.launch.settings) {
    if (name == "FEDRUN_DEVICE") asked = value;
  }
  if (asked == "cuda" && !has_cuda) {
    throw UsageError("--device cuda: CUDA is not in this build: configure with --preset cuda, or use --device cpu");
  }
  site.on_gpus = asked == "cuda" || (asked == "auto" && has_cuda && launcher::count_gpus(variable) > 0);
  if (site.on_gpus) return;
  site.why_no_gpus = asked == "cpu" ? "--device cpu was asked for"
                     : has_cuda ? "the driver of this machine shows none; --device cuda insists on those of other hosts"
                                : "CUDA is not in this build: configure with --preset cuda";
}

bool computes_bf16(const HostDescription& host) {
  return std::ranges::any_of(host.simd, [](const std::string& feature) { return feature.ends_with("bf16"); });
}

launcher::Placement place(const Options& options, const Site& site, int cores) {
  launcher::Placement placement =
      launcher::plan_placement(options.launch, site.on_gpus ? launcher::count_gpus(variable) : 0);
  if (placement.hosts.empty() && !options.launch.ranks && !site.on_gpus) {
    placement.ranks = std::clamp(cores, 1, most_ranks_by_default);
  }
  return placement;
}

// On other hosts, this same program says what they are.
std::vector<HostDescription> describe_hosts(const Options& options, const launcher::Placement& placement,
                                            const Programs& programs, Runner& runner, const fs::path& logs) {
  if (placement.on_this_machine()) return {describe_this_host()};
  std::vector<std::string> command = {(programs.directory / "fedrun").string()};
  command.insert(command.end(), options.launch_words.begin(), options.launch_words.end());
  command.insert(command.end(), {"-np", std::to_string(placement.ranks), "--no-prefix", "--timeout", "120",
                                 (programs.directory / "bench_suite").string(), "--describe-host"});
  const fs::path log = logs / "hosts.txt";
  const CommandEnd end = runner.run(command, log);
  std::vector<HostDescription> hosts;
  for (const Row& row : rows_in(read_file(log), {})) {
    const HostDescription host = host_from_json(row);
    if (std::ranges::find(hosts, host.host, &HostDescription::host) == hosts.end()) hosts.push_back(host);
  }
  if (end.exit_code != 0 || hosts.empty()) {
    throw BackendError(
        fmt::format("cannot start ranks on the hosts: {}\n{}", launcher::shell_line(command), read_file(log)));
  }
  return hosts;
}

fs::path make_directory(const Options& options, std::chrono::system_clock::time_point now) {
  fs::path directory = options.out;
  if (directory.empty()) directory = fmt::format("fedrun-bench-{:%Y%m%d-%H%M%S}", fmt::localtime(now));
  if (fs::exists(directory / "results.json")) {
    throw UsageError(
        fmt::format("--out {}: there are results in it already; choose another directory", directory.string()));
  }
  std::error_code problem;
  fs::create_directories(directory / "logs", problem);
  if (problem) throw UsageError(fmt::format("--out {}: cannot be made: {}", directory.string(), problem.message()));
  return directory;
}

StepOutcome run_step(const Step& step, std::size_t number, const fs::path& directory, Runner& runner,
                     Results& results) {
  StepOutcome outcome{.log = fmt::format("logs/{:02}-{}.txt", number, name_of(step.section))};
  const CommandEnd end = runner.run(step.command, directory / outcome.log);
  outcome.exit_code = end.exit_code;
  outcome.seconds = end.seconds;
  outcome.interrupted = runner.stopped_by().has_value();
  const Rows rows = rows_in(read_file(directory / outcome.log), step);
  outcome.rows = rows.size();
  results.rows.insert(results.rows.end(), rows.begin(), rows.end());
  return outcome;
}

void run_steps(Results& results, const fs::path& directory, Runner& runner) {
  const std::vector<Step>& steps = results.plan.steps;
  for (std::size_t i = 0; i < steps.size() && !runner.stopped_by(); ++i) {
    fmt::print("[{}/{}] {}: {} ... ", i + 1, steps.size(), name_of(steps[i].section), steps[i].name);
    std::fflush(stdout);
    results.outcomes.push_back(run_step(steps[i], i + 1, directory, runner, results));
    const StepOutcome& outcome = results.outcomes.back();
    fmt::print("{:.1f} s, {} rows{}\n", outcome.seconds, outcome.rows,
               outcome.succeeded() ? ""
                                   : fmt::format(", FAILED with exit code {}: see {}", outcome.exit_code,
                                                 (directory / outcome.log).string()));
    std::fflush(stdout);
    results.stopped_by = runner.stopped_by();
    write_files(results, directory);  // so that nothing is lost, whatever comes
  }
  results.stopped_by = runner.stopped_by();
}

int report(const Results& results, const fs::path& directory) {
  write_files(results, directory);
  for (const std::string& problem : results.problems()) fmt::print(stderr, "fedrun bench: {}\n", problem);
  fmt::print("{}\n", (fs::absolute(directory) / "report.html").lexically_normal().string());
  if (results.stopped_by) return 128 + *results.stopped_by;
  return results.all_succeeded() ? EXIT_SUCCESS : exit_failure;
}

void show_plan(const Plan& plan) {
  for (const Step& step : plan.steps) {
    fmt::print("# {}: {}\n{}\n", name_of(step.section), step.name, launcher::shell_line(step.command));
  }
  for (const Skipped& skip : plan.skipped) fmt::print("# not measured: {}: {}\n", skip.what, skip.why);
}

void require_steps(const Plan& plan) {
  if (!plan.steps.empty()) return;
  std::string why;
  for (const Skipped& skip : plan.skipped) why += fmt::format("\n  {}: {}", skip.what, skip.why);
  throw UsageError("nothing is left to measure:" + why);
}

int run(const Options& options, const std::vector<std::string>& arguments) {
  const auto now = std::chrono::system_clock::now();
  const Programs programs = programs_here();
  Site site;
  choose_device(options, site);
  const HostDescription here = describe_this_host();
  const launcher::Placement placement = place(options, site, here.cores);
  site.ranks = placement.ranks;
  for (const launcher::RankPlace& rank : ranks_in_order(placement)) site.host_of_rank.push_back(rank.host);
  site.cores = here.cores;
  site.computes_bf16 = computes_bf16(here);
  if (options.dry_run) {
    const Plan plan = make_plan(options, site, programs);
    show_plan(plan);
    return EXIT_SUCCESS;
  }
  const fs::path directory = make_directory(options, now);
  Runner runner;
  Results results{.command = "fedrun bench " + launcher::shell_line(arguments),
                  .started = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(now)),
                  .device = site.on_gpus ? "cuda" : "cpu",
                  .why_no_gpus = site.why_no_gpus,
                  .quick = options.quick,
                  .ranks = site.ranks,
                  .host_count = site.hosts(site.ranks),
                  .software = describe_software(launcher::build_facts())};
  results.hosts = describe_hosts(options, placement, programs, runner, directory / "logs");
  site.cores = std::ranges::min(results.hosts, {}, &HostDescription::cores).cores;
  site.computes_bf16 = std::ranges::all_of(results.hosts, computes_bf16);
  results.plan = make_plan(options, site, programs);
  require_steps(results.plan);
  run_steps(results, directory, runner);
  return report(results, directory);
}

int act(const std::vector<std::string>& arguments) {
  try {
    const Options options = parse_options(arguments);
    if (options.show_help) {
      fmt::print("{}", help_text());
      return EXIT_SUCCESS;
    }
    if (options.describe_host) {
      fmt::print("{}\n", to_json(describe_this_host()).dump());
      return EXIT_SUCCESS;
    }
    return run(options, arguments);
  } catch (const UsageError& error) {
    fmt::print(stderr, "fedrun bench: {}\ntry 'fedrun bench --help'\n", error.what());
    return exit_usage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "fedrun bench: {}\n", error.what());
    return exit_failure;
  }
}

}  // namespace
}  // namespace fedrun::bench::suite

int main(int argc, char** argv) { return fedrun::bench::suite::act({argv + 1, argv + argc}); }
