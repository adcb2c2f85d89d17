// Shows measurements in the columns that nccl-tests users know, and writes them as JSON lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "json_lines.h"
#include "measure.h"

namespace fedrun::bench {

// Rank 0 has one.
class Report {
 public:
  struct Run {
    int ranks;
    std::string_view backend;
    std::string_view device;  // that the elements lie on
    int iterations;
  };

  // No path: no JSON. Throws UsageError if the file cannot be written.
  Report(const Run& run, const std::optional<std::string>& json_path);

  void add(const Workload& workload, const Contender& contender, const Measurement& measurement);

 private:
  void show_heading(std::string_view collective);

  Run run_;
  std::string_view collective_{};  // of the last row
  JsonLines json_;
};

}  // namespace fedrun::bench
