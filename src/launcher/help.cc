#include <fedrun/core/run_env.h>
#include <fedrun/launcher/flag_table.h>
#include <fedrun/launcher/help.h>
#include <fedrun/launcher/usage.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

namespace fedrun::launcher {
namespace {

constexpr size_t left_width = 30;
constexpr size_t right_width = 86;

// Breaks lines between words.
std::string two_columns(std::string_view left, std::string_view right) {
  std::string text = fmt::format("  {:{}}", left, left_width);
  if (left.size() > left_width) text += fmt::format("\n  {:{}}", "", left_width);
  while (right.size() > right_width) {
    const size_t end = right.rfind(' ', right_width);
    if (end == std::string_view::npos) break;
    text += fmt::format("  {}\n  {:{}}", right.substr(0, end), "", left_width);
    right.remove_prefix(end + 1);
  }
  return text + fmt::format("  {}\n", right);
}

std::string help_line(const Flag& flag) {
  std::string left = fmt::format("{}", fmt::join(shown_names(flag), ", "));
  if (flag.value != nullptr) left += fmt::format(" {}", flag.value);
  return two_columns(left, help_of(flag));
}

}  // namespace

std::string help_text() {
  std::string text;
  for (const char* synopsis : synopses) text += fmt::format("{} {}\n", text.empty() ? "Usage:" : "      ", synopsis);
  text += fmt::format("\n{}\n\nExamples:\n", fmt::join(description, "\n"));
  for (const auto& [command, meaning] : examples) text += fmt::format("  {:<56}{}\n", command, meaning);
  std::string_view group;
  for (const Flag& flag : flag_table()) {
    if (group != flag.group) text += fmt::format("\n{}:\n", group = flag.group);
    text += help_line(flag);
  }
  text += "\nEnvironment variables, which options override:\n";
  for (const RunVariable& variable : run_variables()) {
    text += two_columns(variable.name,
                        fmt::format("{} ({}; default: {})", variable.meaning, variable.values, variable.fallback));
  }
  text += fmt::format("\nExit code:\n  {}\n", fmt::join(exit_codes, "\n  "));
  return text;
}

}  // namespace fedrun::launcher
