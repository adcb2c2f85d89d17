// Parses a program's flags with cxxopts, so that every example and benchmark treats --help and mistakes alike.
#pragma once

#include <fedrun/core/error.h>

#include <cstdio>
#include <cxxopts.hpp>
#include <optional>
#include <string>

namespace fedrun {

// Nothing when the user asked for --help, which rank 0 then shows: the program has only to return. Throws UsageError
// for unknown flags, bad values and stray arguments.
inline std::optional<cxxopts::ParseResult> parse_flags(cxxopts::Options& options, int argc, char** argv, int rank) {
  options.add_options()("help", "show this text");
  const std::string see_help = "; see " + options.program() + " --help";
  try {
    cxxopts::ParseResult parsed = options.parse(argc, argv);
    if (parsed.count("help") != 0) {
      if (rank == 0) std::fputs(options.help().c_str(), stdout);
      return std::nullopt;
    }
    if (!parsed.unmatched().empty())
      throw UsageError("unexpected argument '" + parsed.unmatched().front() + "'" + see_help);
    return parsed;
  } catch (const cxxopts::exceptions::exception& problem) {
    throw UsageError(problem.what() + see_help);
  }
}

}  // namespace fedrun
