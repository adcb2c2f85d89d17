#include "training_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fedrun::bench {
namespace {

std::string_view name_of(System system) {
  switch (system) {
    case System::alone:
      return "alone";
    case System::independent:
      return "independent";
    case System::fedrun:
      return "fedrun";
  }
  return "";
}

std::string percent(const std::optional<double>& part) { return part ? fmt::format("{:.0f} %", 100 * *part) : ""; }

}  // namespace

std::optional<double> TrainingResult::hidden() const {
  if (!bare_communication_ms || *bare_communication_ms <= 0) return std::nullopt;
  return std::clamp(1 - times.communication / *bare_communication_ms, 0.0, 1.0);
}

TrainingReport::TrainingReport(const Run& run, const std::optional<std::string>& json_path)
    : run_(run), json_(json_path) {
  fmt::print(
      "# {} ranks on {}, {} step; parts of a step: medians in ms; step: median of rounds\n"
      "# in step: samples/s had every rank waited for the slowest in each step; efficiency: of as many ranks alone\n"
      "# bare: the communication of a step when nothing else happens; hidden: how much of that nobody waits for\n",
      run.ranks, run.device == "cuda" ? "GPUs" : "the CPU", run.sharded ? "sharded" : "whole");
  fmt::print("# {:<16} {:<12} {:>5} {:>6} {:>5} {:>5} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11} {:>9} {:>10} {:>8} {:>7}\n",
             "model", "system", "ranks", "batch", "type", "wire", "forward", "backward", "exposed", "optimizer", "step",
             "samples/s", "in step", "efficiency", "bare", "hidden");
}

void TrainingReport::add(const TrainingResult& result) {
  fmt::print(
      "  {:<16} {:<12} {:>5} {:>6} {:>5} {:>5} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>11.1f} {:>9} {:>10} "
      "{:>8} {:>7}\n",
      result.model, name_of(result.system), result.ranks, result.batch_size, result.precision, result.compression,
      result.times.forward, result.times.backward, result.times.communication, result.times.optimizer, result.step_ms,
      result.samples_per_second,
      result.samples_per_second_in_step ? fmt::format("{:.1f}", *result.samples_per_second_in_step) : "",
      percent(result.efficiency),
      result.bare_communication_ms ? fmt::format("{:.2f}", *result.bare_communication_ms) : "",
      percent(result.hidden()));
  std::fflush(stdout);
  nlohmann::json line = {{"system", name_of(result.system)},
                         {"model", result.model},
                         {"ranks", result.ranks},
                         {"threads", run_.threads},
                         {"device", run_.device},
                         {"batch_size", result.batch_size},
                         {"precision", result.precision},
                         {"compression", result.compression},
                         {"sharded", run_.sharded},
                         {"samples_per_second", result.samples_per_second},
                         {"step_ms", result.step_ms},
                         {"forward_ms", result.times.forward},
                         {"backward_ms", result.times.backward},
                         {"exposed_communication_ms", result.times.communication},
                         {"optimizer_ms", result.times.optimizer},
                         {"peak_memory_mb", result.peak_memory_mb}};
  if (result.samples_per_second_in_step) line["samples_per_second_in_step"] = *result.samples_per_second_in_step;
  if (result.efficiency) line["scaling_efficiency"] = *result.efficiency;
  if (result.bare_communication_ms) line["bare_communication_ms"] = *result.bare_communication_ms;
  if (const auto hidden = result.hidden()) line["hidden_communication"] = *hidden;
  json_.add(line);
}

}  // namespace fedrun::bench
