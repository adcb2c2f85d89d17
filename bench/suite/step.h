// One launch of a benchmark, and what became of it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "section.h"

namespace fedrun::bench::suite {

using Row = nlohmann::ordered_json;  // one measurement, as the benchmark gave it

struct Step {
  Section section = Section::collectives;
  std::string name{};  // such as "convnet on 2 ranks"
  int ranks = 1;
  int hosts = 1;
  std::vector<std::string> command{};
  Row notes = Row::object();  // what each of its rows is told besides
};

// What is not measured, and why.
struct Skipped {
  std::string what{};
  std::string why{};
};

struct StepOutcome {
  int exit_code = 0;
  double seconds = 0;
  std::string log{};  // below the directory of the results
  std::size_t rows = 0;
  bool interrupted = false;

  bool succeeded() const { return exit_code == 0 && rows > 0; }
};

}  // namespace fedrun::bench::suite
