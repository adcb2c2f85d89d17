// What the user of `fedrun bench` wants measured, where, and where the results go.
#pragma once

#include <fedrun/launcher/options.h>

#include <filesystem>
#include <string>
#include <vector>

#include "section.h"

namespace fedrun::bench::suite {

struct Options {
  std::filesystem::path out{};  // empty: named after the time
  bool quick = false;
  bool dry_run = false;
  bool show_help = false;
  bool describe_host = false;  // what the suite asks of itself on other hosts
  std::vector<Section> sections{};
  std::vector<std::string> models{};

  // For every launch. What the suite decides launch by launch (-np, --device, --threads, --timeout) is not among the
  // words, but in `launch`.
  std::vector<std::string> launch_words{};
  launcher::Options launch{};

  bool wants(Section section) const;
};

// Flags of the suite and of a launch, in any order. Throws UsageError that names the flag.
Options parse_options(const std::vector<std::string>& arguments);

std::string help_text();

}  // namespace fedrun::bench::suite
