#include "chart_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "palette.h"

namespace fedrun::bench::suite {

std::string cell(std::optional<double> value) {
  if (!value) return "";
  if (*value >= 100) return fmt::format("{:.0f}", *value);
  return *value >= 10 ? fmt::format("{:.1f}", *value) : fmt::format("{:.3g}", *value);
}

std::string percent_cell(std::optional<double> part) { return part ? fmt::format("{:.0f} %", 100 * *part) : ""; }

std::vector<Series> lines(const Rows& rows, std::string_view name, std::string_view x, std::string_view y) {
  std::vector<Series> lines;
  for (const std::string& one : values(rows, name)) {
    Series line{.name = one, .color = color_of(one)};
    for (const Row& row : where(rows, name, one)) {
      const auto at = number(row, x);
      const auto value = number(row, y);
      if (at && value && *value > 0) line.points.push_back({*at, *value});
    }
    std::ranges::sort(line.points, {}, &Point::x);
    if (!line.points.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<double> all_x(const std::vector<Series>& series) {
  std::vector<double> all;
  for (const Series& one : series) {
    for (const Point& point : one.points) all.push_back(point.x);
  }
  return all;
}

std::vector<double> all_y(const std::vector<Series>& series) {
  std::vector<double> all;
  for (const Series& one : series) {
    for (const Point& point : one.points) all.push_back(point.y);
  }
  return all;
}

std::optional<Row> find(const Rows& rows, const std::vector<std::pair<std::string_view, std::string>>& fields) {
  const auto found = std::ranges::find_if(rows, [&](const Row& row) {
    return std::ranges::all_of(fields, [&](const auto& field) { return text(row, field.first) == field.second; });
  });
  if (found == rows.end()) return std::nullopt;
  return *found;
}

BarPlot bars(const Rows& rows, std::string_view category, std::string_view name,
             const std::function<std::optional<double>(const Row&)>& value) {
  BarPlot plot{.categories = values(rows, category)};
  for (const std::string& one : values(rows, name)) {
    BarSeries series{.name = one, .color = color_of(one)};
    for (const std::string& group : plot.categories) {
      const auto row = find(rows, {{category, group}, {name, one}});
      series.values.push_back(row ? value(*row) : std::nullopt);
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

std::optional<double> relative(const Rows& rows, const Row& row, std::string_view y, std::string_view varied,
                               const std::string& first, std::string_view same) {
  const auto base = find(rows, {{varied, first}, {same, text(row, same)}});
  const auto value = number(row, y);
  const auto base_value = base ? number(*base, y) : std::nullopt;
  if (!value || !base_value || *base_value <= 0) return std::nullopt;
  return *value / *base_value;
}

}  // namespace fedrun::bench::suite
