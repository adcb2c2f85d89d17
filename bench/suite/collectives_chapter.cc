#include <fmt/format.h>

#include "chart_parts.h"

namespace fedrun::bench::suite {
namespace {

Figure by_size(const Rows& rows, std::string_view y, const std::string& title, const std::string& label) {
  const std::vector<Series> series = lines(rows, "collective", "bytes", y);
  return {title, to_svg(LinePlot{.x_label = "bytes",
                                 .y_label = label,
                                 .x = Axis(Scale::log, Unit::bytes, all_x(series)),
                                 .y = Axis(Scale::log, Unit::plain, all_y(series)),
                                 .x_unit = Unit::bytes,
                                 .series = series})};
}

// A row for each size that any collective has; sizes that ranks cannot divide evenly differ a little between them.
Table by_size_table(const Rows& rows) {
  Table table{.head = {"collective", "size", "time (µs)", "algbw (GB/s)", "busbw (GB/s)", "wrong elements"}};
  for (const Row& row : rows) {
    table.rows.push_back({text(row, "collective"), short_number(number(row, "bytes").value_or(0), Unit::bytes),
                          cell(number(row, "time_us")), cell(number(row, "algbw_gbs")), cell(number(row, "busbw_gbs")),
                          text(row, "wrong")});
  }
  return table;
}

}  // namespace

Chapter collectives_chapter(const Rows& all) {
  const Rows rows = where(all, Section::collectives);
  Chapter chapter{.section = Section::collectives};
  if (rows.empty()) return chapter;
  chapter.text =
      "f32 elements, sums where something is reduced; the median over the rounds of the slowest rank's time, every "
      "result "
      "checked. algbw is bytes / time. busbw is algbw times what the best algorithm moves per byte and rank: 2 (n−1)/n "
      "for allreduce, 1 for broadcast, (n−1)/n for the others; it can be compared across numbers of ranks.";
  chapter.figures = {by_size(rows, "busbw_gbs", "Bus bandwidth by size", "busbw (GB/s)"),
                     by_size(rows, "algbw_gbs", "Algorithm bandwidth by size", "algbw (GB/s)"),
                     by_size(rows, "time_us", "Time of a call by size", "time (µs)")};
  chapter.tables = {by_size_table(rows)};
  return chapter;
}

}  // namespace fedrun::bench::suite
