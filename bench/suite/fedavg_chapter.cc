#include <fmt/format.h>

#include "chart_parts.h"
#include "palette.h"

namespace fedrun::bench::suite {
namespace {

std::string name_of_row(const Row& row) {
  if (text(row, "system") != "fedrun") return text(row, "system");
  const std::string groups = text(row, "groups");
  return fmt::format("{} {}", groups, groups == "1" ? "group" : "groups");
}

Figure rounds(const Rows& rows, const std::string& workload) {
  BarPlot plot{.y_label = "ms per round", .series = {{}}, .is_small = true};
  for (const Row& row : rows) {
    plot.categories.push_back(name_of_row(row));
    plot.series[0].values.push_back(number(row, "round_ms"));
    plot.series[0].colors.push_back(color_of(text(row, "system")));
  }
  return {workload, to_svg(plot), true};
}

}  // namespace

Chapter fedavg_chapter(const Rows& all) {
  const Rows rows = where(all, Section::fedavg);
  Chapter chapter{.section = Section::fedavg};
  if (rows.empty()) return chapter;
  chapter.text =
      "A round of FedAvg on drawn digits, from the choice of the clients to the new global weights; less is better. "
      "Each "
      "group of ranks trains one client at a time, its ranks data-parallel. tight: one process that does nothing but "
      "the "
      "work, logistic regression only. independent: the same batches on all ranks, and nothing is averaged.";
  for (const std::string& workload : values(rows, "workload")) {
    chapter.figures.push_back(rounds(where(rows, "workload", workload), workload));
  }
  Table table{.head = {"workload", "system", "ranks", "groups", "round (ms)", "fastest (ms)"}};
  for (const Row& row : rows) {
    table.rows.push_back({text(row, "workload"), text(row, "system"), text(row, "ranks"), text(row, "groups"),
                          cell(number(row, "round_ms")), cell(number(row, "fastest_ms"))});
  }
  chapter.tables = {table};
  return chapter;
}

}  // namespace fedrun::bench::suite
