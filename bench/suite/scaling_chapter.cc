#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chart_parts.h"
#include "palette.h"

namespace fedrun::bench::suite {
namespace {

enum class Kind { weak, strong };

// A rank's batch stays the same in weak scaling, that of all ranks together in strong scaling.
Rows scaled(const Rows& rows, Kind kind) {
  Rows chosen;
  for (const Row& row : with(rows, "weak_batch_size")) {
    const double batch = number(row, "batch_size").value_or(0);
    const double ranks = number(row, "ranks").value_or(0);
    const bool is_it = kind == Kind::weak ? batch == number(row, "weak_batch_size")
                                          : batch * ranks == number(row, "strong_batch_size_of_all");
    if (is_it) chosen.push_back(row);
  }
  return chosen;
}

// How much faster than on one rank; nothing where that was not measured.
std::optional<double> speed_up(const Rows& rows, const Row& row) {
  return relative(rows, row, "samples_per_second", "ranks", "1", "model");
}

std::vector<Series> speed_ups(const Rows& rows) {
  std::vector<Series> series;
  for (const std::string& model : values(rows, "model")) {
    Series line{.name = model, .color = color_of(model)};
    for (const Row& row : where(rows, "model", model)) {
      if (const auto times = speed_up(rows, row)) line.points.push_back({number(row, "ranks").value_or(0), *times});
    }
    if (!line.points.empty()) series.push_back(std::move(line));
  }
  return series;
}

Figure speed_up_figure(const Rows& rows, const std::string& title) {
  std::vector<Series> series = speed_ups(rows);
  if (series.empty()) return {};
  Series ideal{.name = "ideal", .is_ideal = true};
  std::vector<double> ranks = all_x(series);
  std::ranges::sort(ranks);
  for (const double count : ranks) ideal.points.push_back({count, count});
  series.push_back(std::move(ideal));
  return {title, to_svg(LinePlot{.x_label = "ranks",
                                 .y_label = "times the throughput of one rank",
                                 .x = Axis::with_ticks_at(Scale::linear, ranks),
                                 .y = Axis(Scale::linear, Unit::plain, all_y(series)),
                                 .series = series})};
}

Table scaling_table(const Rows& weak, const Rows& strong) {
  Table table{
      .head = {"scaling", "model", "ranks", "hosts", "batch of a rank", "samples / s", "times one rank", "efficiency"}};
  for (const auto& [kind, rows] : {std::pair("weak", &weak), std::pair("strong", &strong)}) {
    for (const Row& row : *rows) {
      const auto times = speed_up(*rows, row);
      const auto part = times ? std::optional(*times / number(row, "ranks").value_or(1)) : std::nullopt;
      table.rows.push_back({kind, text(row, "model"), text(row, "ranks"), text(row, "hosts"), text(row, "batch_size"),
                            cell(number(row, "samples_per_second")), cell(times), percent_cell(part)});
    }
  }
  return table;
}

void add_collectives(const Rows& rows, Chapter& chapter) {
  if (rows.empty()) return;
  std::vector<Series> series;
  Table table{.head = {"allreduce of", "ranks", "hosts", "time (µs)", "algbw (GB/s)", "busbw (GB/s)"}};
  int color = 0;
  for (const std::string& bytes : values(rows, "bytes")) {
    Series line = lines(where(rows, "bytes", bytes), "collective", "ranks", "busbw_gbs").front();
    line.name = short_number(std::stod(bytes), Unit::bytes);
    line.color = color++;
    series.push_back(std::move(line));
  }
  for (const Row& row : rows) {
    table.rows.push_back({short_number(number(row, "bytes").value_or(0), Unit::bytes), text(row, "ranks"),
                          text(row, "hosts"), cell(number(row, "time_us")), cell(number(row, "algbw_gbs")),
                          cell(number(row, "busbw_gbs"))});
  }
  chapter.figures.push_back(
      {"Allreduce by number of ranks", to_svg(LinePlot{.x_label = "ranks",
                                                       .y_label = "busbw (GB/s)",
                                                       .x = Axis::with_ticks_at(Scale::linear, all_x(series)),
                                                       .y = Axis(Scale::linear, Unit::plain, all_y(series)),
                                                       .series = series})});
  chapter.tables.push_back(std::move(table));
}

}  // namespace

Chapter scaling_chapter(const Rows& all) {
  const Rows rows = where(all, Section::scaling);
  Chapter chapter{.section = Section::scaling};
  if (rows.empty()) return chapter;
  chapter.text =
      "Weak: every rank keeps its batch, so that the work grows with the ranks. Strong: all ranks together keep "
      "theirs, so "
      "that each gets less. Every rank has the same number of threads, however many ranks there are. Ranks fill the "
      "first "
      "host before the next.";
  const Rows weak = scaled(rows, Kind::weak);
  const Rows strong = scaled(rows, Kind::strong);
  for (Figure figure : {speed_up_figure(weak, "Weak scaling"), speed_up_figure(strong, "Strong scaling")}) {
    if (!figure.svg.empty()) chapter.figures.push_back(std::move(figure));
  }
  if (!weak.empty() || !strong.empty()) chapter.tables.push_back(scaling_table(weak, strong));
  add_collectives(with(rows, "collective"), chapter);
  return chapter;
}

}  // namespace fedrun::bench::suite
