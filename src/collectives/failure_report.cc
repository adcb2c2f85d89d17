#include <fedrun/collectives/failure_report.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

namespace fedrun {
namespace {

// A terminate handler takes no argument, so what it needs has to be reachable from everywhere.
Topology& place_of_failure() {
  static Topology place;
  return place;
}

std::string indent_later_lines(const std::string& text) {
  std::string indented;
  for (const char c : text) {
    indented += c;
    if (c == '\n') indented += "  ";
  }
  return indented;
}

[[noreturn]] void report_and_exit() {
  const std::string report = describe_failure(place_of_failure(), std::current_exception()) + "\n";
  std::cout.flush();
  std::fflush(nullptr);
  // One write, so that reports of several ranks do not mix. Nothing is left to do should it fail.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, report.data(), report.size());
  _exit(1);  // destructors of globals could wait for ranks that are still at work
}

}  // namespace

std::string describe_failure(const Topology& where, std::exception_ptr problem) {
  std::string what = "terminated without an exception";
  try {
    if (problem) std::rethrow_exception(problem);
  } catch (const Error& error) {
    what = fmt::format("{}: {}", error.kind(), error.what());
  } catch (const std::exception& error) {
    what = fmt::format("error: {}", error.what());
  } catch (...) {
    what = "error: an exception that is not a std::exception";
  }
  const std::string rank = where.size > 1 ? fmt::format("rank {} on {}: ", where.rank, where.host) : "";
  return "fedrun: " + rank + indent_later_lines(what);
}

void report_uncaught_exceptions(const Topology& where) {
  place_of_failure() = where;
  std::set_terminate(report_and_exit);
}

}  // namespace fedrun
