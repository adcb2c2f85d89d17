// All that a run of the suite knows, and the files that it leaves.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "machine.h"
#include "plan.h"
#include "rows.h"

namespace fedrun::bench::suite {

struct Results {
  std::string command{};  // that the user typed
  std::string started{};  // date and time, UTC
  std::string device{};   // cpu or cuda
  std::string why_no_gpus{};
  bool quick = false;
  int ranks = 1;
  int host_count = 1;
  std::vector<HostDescription> hosts{};
  nlohmann::ordered_json software{};
  Plan plan{};
  std::vector<StepOutcome> outcomes{};  // of the first steps of the plan; the others have not been run
  std::optional<int> stopped_by{};      // a signal
  Rows rows{};

  bool all_succeeded() const;
  // One line for each step that did not succeed.
  std::vector<std::string> problems() const;
};

nlohmann::ordered_json to_json(const Results& results);

// results.json, results.csv and report.html. Each appears whole or not at all, so that it can be called after every
// step. Throws BackendError for a directory that cannot be written.
void write_files(const Results& results, const std::filesystem::path& directory);

}  // namespace fedrun::bench::suite
