#include <fedrun/core/error.h>
#include <fedrun/launcher/flag.h>
#include <fedrun/launcher/flag_table.h>
#include <fedrun/launcher/split_list.h>
#include <fmt/format.h>

#include <algorithm>

namespace fedrun::launcher {

std::vector<std::string_view> shown_names(const Flag& flag) { return split_list(flag.names, ' '); }

std::vector<std::string_view> all_names(const Flag& flag) {
  std::vector<std::string_view> names = shown_names(flag);
  if (flag.also == nullptr) return names;
  const std::vector<std::string_view> more = split_list(flag.also, ' ');
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

const Flag* find_flag(std::string_view name) {
  for (const Flag& flag : flag_table()) {
    const auto names = all_names(flag);
    if (std::find(names.begin(), names.end(), name) != names.end()) return &flag;
  }
  return nullptr;
}

const RunVariable& variable_of(const Flag& flag) {
  const auto variables = run_variables();
  return *std::find_if(variables.begin(), variables.end(),
                       [&](const RunVariable& row) { return std::string_view(row.name) == flag.variable; });
}

std::string help_of(const Flag& flag) {
  if (flag.help != nullptr) return flag.help;
  const RunVariable& variable = variable_of(flag);
  return fmt::format("{} ({})", variable.meaning, variable.values);
}

std::vector<std::string_view> choices_of(const Flag& flag) {
  if (flag.value == nullptr) return {};
  const std::string_view values = flag.variable != nullptr ? variable_of(flag).values : flag.value;
  if (values.find('|') == std::string_view::npos) return {};
  return split_list(values, '|');
}

void apply(const Flag& flag, std::string_view name, std::string_view value, Options& options) {
  try {
    if (flag.variable == nullptr) return flag.apply(options, value);
    const std::string text = flag.translate != nullptr ? flag.translate(value) : std::string(value);
    RunEnv scratch;  // checked here already, so that the error names the flag
    variable_of(flag).parse(scratch, text);
    options.settings.emplace_back(flag.variable, text);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", name, error.what()));
  }
}

}  // namespace fedrun::launcher
