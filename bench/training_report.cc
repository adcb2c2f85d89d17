#include "training_report.h"

#include <fedrun/core/error.h>
#include <fmt/format.h>

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

}  // namespace

TrainingReport::TrainingReport(const TrainingFlags& flags, int ranks)
    : compression_(flags.compression->name()), sharded_(flags.sharded) {
  if (flags.json_path) {
    json_.open(*flags.json_path);
    if (!json_) throw UsageError(fmt::format("--json: cannot write {}: does its directory exist?", *flags.json_path));
  }
  fmt::print(
      "# {} ranks, compression {}, {} step; parts of a step: medians in ms; step: median of rounds\n"
      "# in step: samples/s had every rank waited for the slowest in each step; efficiency: of as many ranks alone\n",
      ranks, compression_, sharded_ ? "sharded" : "whole");
  fmt::print("# {:<16} {:<12} {:>5} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11} {:>9} {:>10}\n", "model", "system",
             "ranks", "batch", "forward", "backward", "exposed", "optimizer", "step", "samples/s", "in step",
             "efficiency");
}

void TrainingReport::add(const TrainingResult& result) {
  fmt::print("  {:<16} {:<12} {:>5} {:>6} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>11.1f} {:>9} {:>10}\n",
             result.model, name_of(result.system), result.ranks, result.batch_size, result.times.forward,
             result.times.backward, result.times.communication, result.times.optimizer, result.step_ms,
             result.samples_per_second,
             result.samples_per_second_in_step ? fmt::format("{:.1f}", *result.samples_per_second_in_step) : "",
             result.efficiency ? fmt::format("{:.0f} %", 100 * *result.efficiency) : "");
  std::fflush(stdout);
  if (!json_.is_open()) return;
  nlohmann::json line = {{"system", name_of(result.system)},
                         {"model", result.model},
                         {"ranks", result.ranks},
                         {"batch_size", result.batch_size},
                         {"compression", compression_},
                         {"sharded", sharded_},
                         {"samples_per_second", result.samples_per_second},
                         {"step_ms", result.step_ms},
                         {"forward_ms", result.times.forward},
                         {"backward_ms", result.times.backward},
                         {"exposed_communication_ms", result.times.communication},
                         {"optimizer_ms", result.times.optimizer},
                         {"peak_memory_mb", result.peak_memory_mb}};
  if (result.samples_per_second_in_step) line["samples_per_second_in_step"] = *result.samples_per_second_in_step;
  if (result.efficiency) line["scaling_efficiency"] = *result.efficiency;
  json_ << line.dump() << std::endl;
}

}  // namespace fedrun::bench
