#include <fedrun/core/error.h>
#include <fedrun/core/log.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <memory>

namespace fedrun {
namespace {

constexpr std::array<std::string_view, 5> level_names = {"debug", "info", "warn", "error", "off"};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  constexpr std::array levels = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err,
                                 spdlog::level::off};
  return levels[static_cast<size_t>(level)];
}

spdlog::logger& logger() {
  static const auto instance = [] {
    auto created = std::make_unique<spdlog::logger>("fedrun", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    created->set_level(spdlog::level::warn);
    created->set_pattern("%l: %v");
    return created;
  }();
  return *instance;
}

// The prefix is text, not a pattern: a lone % in a host name must not be read as a directive.
std::string escape_pattern(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped.append(c == '%' ? 2 : 1, c);
  return escaped;
}

}  // namespace

LogLevel parse_log_level(std::string_view word) {
  for (size_t i = 0; i < level_names.size(); ++i) {
    if (word == level_names[i]) return static_cast<LogLevel>(i);
  }
  throw UsageError(fmt::format("unknown log level '{}': use debug, info, warn, error or off", word));
}

std::string_view to_string(LogLevel level) { return level_names[static_cast<size_t>(level)]; }

namespace log {

void configure(const Settings& settings) {
  logger().set_level(to_spdlog(settings.level));
  logger().set_pattern(escape_pattern(settings.prefix) + "%l: %v");
}

bool enabled(LogLevel level) { return logger().should_log(to_spdlog(level)); }

void write(LogLevel level, std::string_view message) { logger().log(to_spdlog(level), "{}", message); }

}  // namespace log
}  // namespace fedrun
