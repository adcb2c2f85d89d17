// Shows measurements in the columns that nccl-tests users know, and writes them as JSON lines.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "measure.h"

namespace fedrun::bench {

// Rank 0 has one.
class Report {
 public:
  struct Run {
    int ranks;
    std::string_view backend;
    int iterations;
  };

  // No path: no JSON. Throws UsageError if the file cannot be written.
  Report(const Run& run, const std::optional<std::string>& json_path);

  void add(const Workload& workload, const Contender& contender, const Measurement& measurement);

 private:
  void show_heading(std::string_view collective);

  int iterations_;
  std::string_view collective_{};  // of the last row
  std::ofstream json_;
};

}  // namespace fedrun::bench
