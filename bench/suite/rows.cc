#include "rows.h"

#include <fedrun/launcher/split_list.h>

#include <algorithm>

namespace fedrun::bench::suite {

Rows rows_in(std::string_view output, const Step& step) {
  Rows rows;
  for (const std::string_view line : launcher::split_list(output, '\n')) {
    if (!line.starts_with('{')) continue;
    const Row measured = Row::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!measured.is_object()) continue;  // a line that was cut off when its program ended
    Row row = {{"section", name_of(step.section)}, {"step", step.name}, {"hosts", step.hosts}};
    row.update(measured);
    row.update(step.notes);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<double> number(const Row& row, std::string_view field) {
  const auto found = row.find(std::string(field));
  if (found == row.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::string text(const Row& row, std::string_view field) {
  const auto found = row.find(std::string(field));
  if (found == row.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

Rows where(const Rows& rows, std::string_view field, std::string_view value) {
  Rows chosen;
  std::ranges::copy_if(rows, std::back_inserter(chosen), [&](const Row& row) { return text(row, field) == value; });
  return chosen;
}

Rows where(const Rows& rows, Section section) { return where(rows, "section", name_of(section)); }

Rows with(const Rows& rows, std::string_view field) {
  Rows chosen;
  std::ranges::copy_if(rows, std::back_inserter(chosen), [&](const Row& row) { return row.contains(field); });
  return chosen;
}

std::vector<std::string> values(const Rows& rows, std::string_view field) {
  std::vector<std::string> values;
  for (const Row& row : rows) {
    const std::string value = text(row, field);
    if (!value.empty() && std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  return values;
}

}  // namespace fedrun::bench::suite
