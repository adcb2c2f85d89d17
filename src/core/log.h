// Log lines on standard error that say which rank wrote them; one line is one write, so ranks never mix.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace fedrun {

enum class LogLevel { debug, info, warn, error, off };

// Throws UsageError for a word that is not a level.
LogLevel parse_log_level(std::string_view word);
std::string_view to_string(LogLevel level);

namespace log {

struct Settings {
  LogLevel level = LogLevel::warn;
  std::string prefix;  // such as "[rank 1] "; empty where there is only one process
};

// Process-wide, because log lines come from every layer. Call before other threads exist.
void configure(const Settings& settings);
bool enabled(LogLevel level);
void write(LogLevel level, std::string_view message);

template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(LogLevel::debug)) write(LogLevel::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(LogLevel::info)) write(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(LogLevel::warn)) write(LogLevel::warn, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(LogLevel::error)) write(LogLevel::error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace log
}  // namespace fedrun
