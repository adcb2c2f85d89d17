#include "csv.h"

#include <algorithm>
#include <vector>

namespace fedrun::bench::suite {

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string to_csv(const Rows& rows) {
  std::vector<std::string> columns;
  for (const Row& row : rows) {
    for (const auto& [field, value] : row.items()) {
      if (std::ranges::find(columns, field) == columns.end()) columns.push_back(field);
    }
  }
  std::string csv;
  const auto end_line = [&] {
    if (!csv.empty()) csv.back() = '\n';  // in place of the last comma
  };
  for (const std::string& column : columns) csv += csv_field(column) + ',';
  end_line();
  for (const Row& row : rows) {
    for (const std::string& column : columns) csv += csv_field(text(row, column)) + ',';
    end_line();
  }
  return csv;
}

}  // namespace fedrun::bench::suite
