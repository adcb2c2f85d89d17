// What a benchmark has measured, as one JSON object per line, for programs.
#pragma once

#include <fedrun/core/error.h>

#include <fstream>
#include <iostream>
#include <optional>
#include <string>

namespace fedrun::bench {

class JsonLines {
 public:
  // No path: nothing is written. "-" is the standard output, which reaches the launcher from whatever host it comes.
  // Throws UsageError if the file cannot be written.
  explicit JsonLines(const std::optional<std::string>& path) : is_on_(path.has_value()) {
    if (!path || *path == "-") return;
    file_.open(*path);
    if (!file_) throw UsageError("cannot write --json file '" + *path + "': does its directory exist?");
  }

  template <typename Json>
  void add(const Json& line) {
    if (!is_on_) return;
    std::ostream& out = file_.is_open() ? file_ : std::cout;
    out << line.dump() << std::endl;  // a program that is ended leaves what it has measured
  }

 private:
  bool is_on_;
  std::ofstream file_;
};

}  // namespace fedrun::bench
