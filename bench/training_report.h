// Shows what training_bench has measured: a table for people, JSON lines for programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "json_lines.h"
#include "training_run.h"

namespace fedrun::bench {

struct TrainingResult {
  System system = System::fedrun;
  std::string model{};
  int ranks = 0;  // that train
  std::int64_t batch_size = 0;
  std::string precision{};
  std::string compression{};
  StepTimes times{};
  double step_ms = 0;  // whole steps: the median over the rounds of their means
  double samples_per_second = 0;
  std::optional<double> samples_per_second_in_step{};  // had the ranks waited for the slowest in each step
  std::optional<double> efficiency{};                  // of what as many ranks alone would reach
  std::optional<double> bare_communication_ms{};       // of a step, when nothing else happens
  double peak_memory_mb = 0;

  // How much of the communication the ranks do not wait for: it happens while they compute.
  std::optional<double> hidden() const;
};

// Used by rank 0.
class TrainingReport {
 public:
  struct Run {
    int ranks;
    int threads;
    std::string device;  // cpu or cuda
    bool sharded;
  };
  TrainingReport(const Run& run, const std::optional<std::string>& json_path);
  void add(const TrainingResult& result);

 private:
  Run run_;
  JsonLines json_;
};

}  // namespace fedrun::bench
