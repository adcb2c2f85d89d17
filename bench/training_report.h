// Shows what training_bench has measured: a table for people, JSON lines for programs.
#pragma once

#include <fstream>
#include <optional>
#include <string>

#include "training_run.h"

namespace fedrun::bench {

struct TrainingResult {
  System system = System::fedrun;
  std::string model{};
  int ranks = 0;  // that train
  std::int64_t batch_size = 0;
  StepTimes times{};
  double step_ms = 0;  // whole steps: the median over the rounds of their means
  double samples_per_second = 0;
  std::optional<double> samples_per_second_in_step{};  // had the ranks waited for the slowest in each step
  std::optional<double> efficiency{};                  // of what as many ranks alone would reach
  double peak_memory_mb = 0;
};

// Used by rank 0.
class TrainingReport {
 public:
  TrainingReport(const TrainingFlags& flags, int ranks);
  void add(const TrainingResult& result);

 private:
  std::string compression_;
  bool sharded_;
  std::ofstream json_;
};

}  // namespace fedrun::bench
