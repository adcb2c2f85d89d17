#include <fmt/format.h>

#include "chart_parts.h"
#include "palette.h"

namespace fedrun::bench::suite {
namespace {

constexpr std::string_view rate = "samples_per_second";

// Samples per second of each system, a picture for each model: their scales have nothing in common.
Figure throughput(const Rows& rows, const std::string& model) {
  BarPlot plot{.y_label = "samples / s", .series = {{}}, .is_small = true};
  for (const Row& row : where(rows, "model", model)) {
    const std::string system = text(row, "system");
    plot.categories.push_back(system);
    plot.series[0].values.push_back(number(row, rate));
    plot.series[0].colors.push_back(color_of(system));
  }
  return {model, to_svg(plot), true};
}

Figure relative_bars(const Rows& rows, const std::string& title, std::string_view varied, const std::string& first) {
  BarPlot plot =
      bars(rows, "model", varied, [&](const Row& row) { return relative(rows, row, rate, varied, first, "model"); });
  plot.y_label = fmt::format("samples / s, {} = 1", first);
  return {title, to_svg(plot)};
}

Table sweep_table(const Rows& rows, const std::string& head, std::string_view varied) {
  Table table{.head = {"model", head, "ranks", "samples / s", "step (ms)", "exposed communication (ms)"}};
  for (const Row& row : rows) {
    table.rows.push_back({text(row, "model"), text(row, varied), text(row, "ranks"), cell(number(row, rate)),
                          cell(number(row, "step_ms")), cell(number(row, "exposed_communication_ms"))});
  }
  return table;
}

Figure parts_of_steps(const Rows& rows) {
  BarPlot plot{.y_label = "% of a step", .categories = values(rows, "model"), .is_stacked = true};
  for (const auto& [name, field] :
       {std::pair("forward", "forward_ms"), std::pair("backward", "backward_ms"),
        std::pair("exposed communication", "exposed_communication_ms"), std::pair("optimizer", "optimizer_ms")}) {
    BarSeries series{.name = name, .color = color_of(name)};
    for (const std::string& model : plot.categories) {
      const Row row = where(rows, "model", model).front();
      double whole = 0;
      for (const char* part : {"forward_ms", "backward_ms", "exposed_communication_ms", "optimizer_ms"}) {
        whole += number(row, part).value_or(0);
      }
      series.values.push_back(whole > 0 ? std::optional(100 * number(row, field).value_or(0) / whole) : std::nullopt);
    }
    plot.series.push_back(std::move(series));
  }
  return {"Where the time of a step goes", to_svg(plot)};
}

Figure hidden_part(const Rows& rows) {
  BarPlot plot{.y_label = "% of a step", .categories = values(rows, "model")};
  for (const auto& [name, field] : {std::pair("communication alone", "bare_communication_ms"),
                                    std::pair("exposed communication", "exposed_communication_ms")}) {
    BarSeries series{.name = name, .color = color_of(name)};
    for (const std::string& model : plot.categories) {
      const Row row = where(rows, "model", model).front();
      series.values.push_back(100 * number(row, field).value_or(0) / number(row, "step_ms").value_or(1));
    }
    plot.series.push_back(std::move(series));
  }
  return {"Communication by itself, and what of it a step waits for", to_svg(plot)};
}

}  // namespace

Chapter training_chapter(const Rows& all) {
  const Rows rows = where(all, Section::training);
  Chapter chapter{.section = Section::training};
  if (rows.empty()) return chapter;
  chapter.text =
      "Random data, gradients averaged in every step. fedrun: all ranks train one model. independent: every rank "
      "trains a "
      "model of its own and nothing is communicated. alone: rank 0 trains and the others wait. Efficiency is the "
      "throughput over that of as many ranks alone: where ranks share memory and caches, independent ones lose as "
      "well.";
  for (const std::string& model : values(rows, "model")) chapter.figures.push_back(throughput(rows, model));
  Table table{.head = {"model", "system", "ranks", "batch of a rank", "samples / s", "step (ms)", "efficiency",
                       "peak memory of rank 0 (MB)"}};
  for (const Row& row : rows) {
    table.rows.push_back({text(row, "model"), text(row, "system"), text(row, "ranks"), text(row, "batch_size"),
                          cell(number(row, rate)), cell(number(row, "step_ms")),
                          percent_cell(number(row, "scaling_efficiency")), cell(number(row, "peak_memory_mb"))});
  }
  chapter.tables = {table};
  return chapter;
}

Chapter overlap_chapter(const Rows& all) {
  Rows rows = where(all, Section::overlap);
  if (rows.empty()) rows = where(all, Section::training);
  rows = with(where(rows, "system", "fedrun"), "bare_communication_ms");
  Chapter chapter{.section = Section::overlap};
  if (rows.empty()) return chapter;
  chapter.text =
      "Exposed is the time in which a rank does nothing but communicate or wait for others. Communication alone is "
      "what "
      "the same buckets take when nothing else happens. Hidden is how much of that nobody waits for; it is 0 where the "
      "exposed time is longer, because waiting for a slower rank counts as exposed. On the CPU the cores that compute "
      "also "
      "reduce, so that little can be hidden there; on GPUs NCCL works on a stream of its own.";
  chapter.figures = {parts_of_steps(rows), hidden_part(rows)};
  Table table{.head = {"model", "ranks", "forward (ms)", "backward (ms)", "exposed communication (ms)",
                       "optimizer (ms)", "communication alone (ms)", "hidden"}};
  for (const Row& row : rows) {
    table.rows.push_back({text(row, "model"), text(row, "ranks"), cell(number(row, "forward_ms")),
                          cell(number(row, "backward_ms")), cell(number(row, "exposed_communication_ms")),
                          cell(number(row, "optimizer_ms")), cell(number(row, "bare_communication_ms")),
                          percent_cell(number(row, "hidden_communication"))});
  }
  chapter.tables = {table};
  return chapter;
}

Chapter batch_chapter(const Rows& all) {
  const Rows rows = where(all, Section::batch);
  Chapter chapter{.section = Section::batch};
  if (rows.empty()) return chapter;
  chapter.text = "Samples that each rank takes in a step. Larger ones hide what a step costs whatever its size.";
  const std::vector<Series> series = lines(rows, "model", "batch_size", rate);
  chapter.figures = {{"Throughput by batch size", to_svg(LinePlot{.x_label = "samples of a rank in a step",
                                                                  .y_label = "samples / s, all ranks",
                                                                  .x = Axis::with_ticks_at(Scale::log, all_x(series)),
                                                                  .y = Axis(Scale::log, Unit::plain, all_y(series)),
                                                                  .series = series})}};
  chapter.tables = {sweep_table(rows, "batch of a rank", "batch_size")};
  return chapter;
}

Chapter precision_chapter(const Rows& all) {
  const Rows rows = where(all, Section::precision);
  Chapter chapter{.section = Section::precision};
  if (rows.empty()) return chapter;
  chapter.text =
      "The type of parameters, gradients and inputs. A CPU without arithmetic for bf16 (avx512_bf16, amx_bf16) "
      "converts "
      "back and forth, and is slower in it than in f32.";
  chapter.figures = {relative_bars(rows, "Throughput by precision", "precision", "f32")};
  chapter.tables = {sweep_table(rows, "precision", "precision")};
  return chapter;
}

Chapter compression_chapter(const Rows& all) {
  const Rows rows = where(all, Section::compression);
  Chapter chapter{.section = Section::compression};
  if (rows.empty()) return chapter;
  chapter.text =
      "f32 gradients that travel between hosts, and between GPUs, as 16-bit floats. Inside a host the CPU's ranks "
      "share "
      "their memory: nothing travels, so that off and on should be equal there.";
  const Rows trained = with(rows, "model");
  if (!trained.empty()) {
    chapter.figures.push_back(relative_bars(trained, "Training with compressed gradients", "compression", "none"));
    chapter.tables.push_back(sweep_table(trained, "compression", "compression"));
  }
  const std::vector<Series> series = lines(with(rows, "collective"), "wire", "bytes", "algbw_gbs");
  if (series.empty()) return chapter;
  chapter.figures.push_back(
      {"Allreduce by what travels", to_svg(LinePlot{.x_label = "bytes",
                                                    .y_label = "algbw (GB/s)",
                                                    .x = Axis(Scale::log, Unit::bytes, all_x(series)),
                                                    .y = Axis(Scale::log, Unit::plain, all_y(series)),
                                                    .x_unit = Unit::bytes,
                                                    .series = series})});
  Table table{.head = {"travels as", "size", "time (µs)", "algbw (GB/s)"}};
  for (const Row& row : with(rows, "collective")) {
    const std::string wire = text(row, "wire");
    table.rows.push_back({wire == "none" ? "f32" : wire, short_number(number(row, "bytes").value_or(0), Unit::bytes),
                          cell(number(row, "time_us")), cell(number(row, "algbw_gbs"))});
  }
  chapter.tables.push_back(table);
  return chapter;
}

}  // namespace fedrun::bench::suite
