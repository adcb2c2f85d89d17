// What a run of fedavg leaves behind in --run-dir.
#pragma once

#include <fedrun/core/event_file.h>
#include <fedrun/fl/result_aggregator.h>
#include <fedrun/fl/round_report.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "fedavg_data.h"
#include "fedavg_flags.h"

namespace fedavg {

// One round, as rounds.jsonl shows it; what was not measured is null.
struct RoundRecord {
  fedrun::fl::RoundReport report;
  std::optional<fedrun::Meter> metrics{};
  double evaluate_seconds = 0;
};

// Does nothing without --run-dir, and on ranks other than 0.
class Records {
 public:
  // A run that is resumed keeps the rounds before the first one to come; otherwise an earlier run's checkpoint is
  // removed as well. Throws UsageError where nothing can be written.
  Records(const Flags& flags, const Data& data, int rank, std::uint64_t first_round);

  void write(const RoundRecord& round);
  void write_clients(const fedrun::fl::ResultAggregator& results) const;
  void write_weights(const torch::nn::Module& model) const;

 private:
  std::ofstream open(const char* name) const;

  std::filesystem::path directory_;
  std::ofstream rounds_;
  std::optional<fedrun::EventFile> events_;
};

}  // namespace fedavg
