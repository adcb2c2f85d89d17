#include "results.h"

#include <fedrun/core/error.h>
#include <fedrun/launcher/shell_words.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>

#include "csv.h"
#include "page.h"

namespace fedrun::bench::suite {
namespace {

void write_whole(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path unfinished = file.string() + ".unfinished";
  {
    std::ofstream out(unfinished);
    out << text;
    if (!out.flush()) throw BackendError(fmt::format("cannot write {}: is the disk full?", unfinished.string()));
  }
  std::error_code problem;
  std::filesystem::rename(unfinished, file, problem);
  if (problem) throw BackendError(fmt::format("cannot write {}: {}", file.string(), problem.message()));
}

}  // namespace

bool Results::all_succeeded() const {
  return outcomes.size() == plan.steps.size() && std::ranges::all_of(outcomes, &StepOutcome::succeeded);
}

std::vector<std::string> Results::problems() const {
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const StepOutcome& outcome = outcomes[i];
    if (outcome.succeeded()) continue;
    const char* why = outcome.interrupted ? "was stopped" : outcome.exit_code == 0 ? "measured nothing" : "failed";
    problems.push_back(fmt::format("{}: {} {} (exit code {}); see {}", name_of(plan.steps[i].section),
                                   plan.steps[i].name, why, outcome.exit_code, outcome.log));
  }
  const std::size_t not_run = plan.steps.size() - outcomes.size();
  if (not_run != 0) problems.push_back(fmt::format("{} steps were not begun", not_run));
  return problems;
}

nlohmann::ordered_json to_json(const Results& results) {
  nlohmann::ordered_json hosts = nlohmann::ordered_json::array();
  for (const HostDescription& host : results.hosts) hosts.push_back(to_json(host));
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < results.outcomes.size(); ++i) {
    const Step& step = results.plan.steps[i];
    const StepOutcome& outcome = results.outcomes[i];
    steps.push_back({{"section", name_of(step.section)},
                     {"name", step.name},
                     {"ranks", step.ranks},
                     {"hosts", step.hosts},
                     {"command", launcher::shell_line(step.command)},
                     {"exit_code", outcome.exit_code},
                     {"seconds", outcome.seconds},
                     {"rows", outcome.rows},
                     {"log", outcome.log}});
  }
  nlohmann::ordered_json skipped = nlohmann::ordered_json::array();
  for (const Skipped& skip : results.plan.skipped) skipped.push_back({{"what", skip.what}, {"why", skip.why}});
  return {{"format", 1},
          {"command", results.command},
          {"started", results.started},
          {"device", results.device},
          {"quick", results.quick},
          {"ranks", results.ranks},
          {"hosts", results.host_count},
          {"machine", {{"hosts", hosts}, {"software", results.software}}},
          {"complete", results.all_succeeded()},
          {"problems", results.problems()},
          {"skipped", skipped},
          {"steps", steps},
          {"results", results.rows}};
}

void write_files(const Results& results, const std::filesystem::path& directory) {
  write_whole(directory / "results.json", to_json(results).dump(1) + "\n");
  write_whole(directory / "results.csv", to_csv(results.rows));
  write_whole(directory / "report.html", to_html(results));
}

}  // namespace fedrun::bench::suite
