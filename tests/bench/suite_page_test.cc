// `fedrun bench`: its plots, its table for spreadsheets and its page say what was measured, and on what.
#include <gmock/gmock.h>

#include <cmath>

#include "../../bench/suite/axis.h"
#include "../../bench/suite/chapter.h"
#include "../../bench/suite/csv.h"
#include "../../bench/suite/page.h"
#include "../../bench/suite/plot.h"

namespace fedrun::bench::suite {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::Not;
using testing::SizeIs;

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> labels;
  for (const Tick& tick : axis.ticks()) labels.push_back(tick.label);
  return labels;
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// The numbers that an attribute has, in the order of the text. GCC 12 warns about std::regex under the sanitizers.
std::vector<double> attribute(const std::string& svg, const std::string& name) {
  const std::string start = " " + name + "=\"";
  std::vector<double> values;
  for (std::size_t at = svg.find(start); at != std::string::npos; at = svg.find(start, at + 1)) {
    values.push_back(std::stod(svg.substr(at + start.size())));
  }
  return values;
}

TEST(Axis, EndsAtRoundNumbers) {
  const Axis axis(Scale::linear, Unit::plain, {3, 47});
  EXPECT_THAT(labels(axis), ElementsAre("0", "10", "20", "30", "40", "50"));
  EXPECT_DOUBLE_EQ(axis.position(0), 0);
  EXPECT_DOUBLE_EQ(axis.position(25), 0.5);
  EXPECT_THAT(labels(Axis(Scale::linear, Unit::plain, {0})), SizeIs(Ge(2)));
}

TEST(Axis, NamesPowersOfTenOnALogAxis) {
  const Axis axis(Scale::log, Unit::plain, {0.02, 700});
  EXPECT_THAT(labels(axis), ElementsAre("0.1", "1", "10", "100", "1000"));
  EXPECT_NEAR(axis.position(0.02), 0, 1e-9);
  EXPECT_NEAR(axis.position(1000), 1, 1e-9);
  EXPECT_THAT(labels(Axis(Scale::log, Unit::plain, {3, 40})), ElementsAre("2", "5", "10", "20", "50"));
  EXPECT_GT(Axis(Scale::log, Unit::plain, {5}).position(5), -1e-9);
}

TEST(Axis, NamesBytesByPowersOfTwo) {
  EXPECT_THAT(labels(Axis(Scale::log, Unit::bytes, {1024, 4 << 20})),
              ElementsAre("1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB"));
  const Axis odd(Scale::log, Unit::bytes, {1020, 4080});  // what three ranks can divide
  EXPECT_THAT(labels(odd), ElementsAre("1 KiB", "2 KiB"));
  EXPECT_NEAR(odd.position(1020), 0, 1e-9);
  EXPECT_NEAR(odd.position(4080), 1, 1e-9);
}

TEST(ShortNumber, IsShortAndRight) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.025), "0.025");
  EXPECT_EQ(short_number(7.5), "7.5");
  EXPECT_EQ(short_number(120), "120");
  EXPECT_EQ(short_number(1234), "1234");
  EXPECT_EQ(short_number(64000), "64k");
  EXPECT_EQ(short_number(1536, Unit::bytes), "1.5 KiB");
}

TEST(Plot, DrawsEveryPointInsideTheFrame) {
  const std::vector<Series> series = {{.name = "a <b>", .color = 1, .points = {{1024, 0.5}, {1 << 20, 12}}},
                                      {.name = "best", .points = {{1024, 1}, {1 << 20, 20}}, .is_ideal = true}};
  const std::string svg = to_svg(LinePlot{.x_label = "bytes",
                                          .y_label = "GB/s",
                                          .x = Axis(Scale::log, Unit::bytes, {1024, 1 << 20}),
                                          .y = Axis(Scale::log, Unit::plain, {0.5, 20}),
                                          .x_unit = Unit::bytes,
                                          .series = series});
  EXPECT_EQ(count(svg, "<circle"), 2) << "an ideal has no points";
  EXPECT_THAT(svg, HasSubstr("a &lt;b&gt;: 12 at 1 MiB"));
  EXPECT_THAT(svg, HasSubstr(">bytes</text>"));
  EXPECT_THAT(svg, HasSubstr(">GB/s</text>"));
  EXPECT_THAT(svg, HasSubstr("class=\"ideal\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(attribute(svg, "cx"), AllOf(SizeIs(2), Each(AllOf(Ge(60), Le(640)))));
  EXPECT_THAT(attribute(svg, "cy"), AllOf(SizeIs(2), Each(AllOf(Ge(0), Le(330)))));
}

TEST(Plot, DrawsABarForEachValueThatThereIs) {
  const std::string svg = to_svg(BarPlot{.y_label = "samples / s",
                                         .categories = {"convnet", "mlp"},
                                         .series = {{.name = "f32", .color = 0, .values = {100, 50}},
                                                    {.name = "bf16", .color = 1, .values = {120, std::nullopt}}}});
  EXPECT_EQ(count(svg, "<title>"), 3);
  EXPECT_THAT(svg, HasSubstr("convnet, bf16: 120"));
  EXPECT_THAT(svg, HasSubstr(">mlp</text>"));
}

TEST(Csv, HasAColumnForEveryFieldOfAnyRow) {
  EXPECT_EQ(to_csv({Row{{"a", 1}, {"b", "x,y"}}, Row{{"a", 2.5}, {"c", "say \"no\""}}}),
            "a,b,c\n1,\"x,y\",\n2.5,,\"say \"\"no\"\"\"\n");
  EXPECT_EQ(to_csv({}), "");
}

TEST(Rows, AreTheLinesThatAreWholeObjects) {
  const Step step{.section = Section::scaling, .name = "s", .hosts = 2, .notes = {{"weak_batch_size", 4}}};
  const Rows rows = rows_in("# table\n{\"time_us\": 3}\n{\"time_us\": 4", step);
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(text(rows[0], "section"), "scaling");
  EXPECT_EQ(number(rows[0], "hosts"), 2);
  EXPECT_EQ(number(rows[0], "time_us"), 3);
  EXPECT_EQ(number(rows[0], "weak_batch_size"), 4);
  EXPECT_EQ(number(rows[0], "nothing"), std::nullopt);
}

TEST(Machine, ReadsWhatTheSystemSays) {
  EXPECT_EQ(cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: other\n"), "Some CPU @ 2 GHz");
  EXPECT_EQ(cpu_model("BogoMIPS : 50\n"), "");
  HostDescription host;
  read_gpus("NVIDIA H100 80GB HBM3, 81559 MiB, 550.54.15\nNVIDIA H100 80GB HBM3, 81559 MiB, 550.54.15\n", host);
  ASSERT_EQ(host.gpus.size(), 2);
  EXPECT_EQ(host.gpus[1].memory, "81559 MiB");
  EXPECT_EQ(host.gpu_driver, "550.54.15");
  host.host = "node1";
  host.cores = 64;
  EXPECT_EQ(to_json(host_from_json(to_json(host))), to_json(host));
  EXPECT_GT(describe_this_host().cores, 0);
}

Row trained(const char* section, const char* model, int ranks, int batch, double rate) {
  return {{"section", section},
          {"hosts", 1},
          {"system", "fedrun"},
          {"model", model},
          {"ranks", ranks},
          {"batch_size", batch},
          {"precision", "f32"},
          {"compression", "none"},
          {"samples_per_second", rate},
          {"step_ms", 10},
          {"forward_ms", 3},
          {"backward_ms", 5},
          {"exposed_communication_ms", 1},
          {"optimizer_ms", 1},
          {"bare_communication_ms", 4},
          {"hidden_communication", 0.75}};
}

// As much as a run of all sections leaves.
Rows some_rows() {
  Rows rows;
  for (const char* kind : {"allreduce", "alltoall"}) {
    for (const int bytes : {1024, 65536}) {
      rows.push_back({{"section", "collectives"},
                      {"collective", kind},
                      {"bytes", bytes},
                      {"time_us", bytes / 100.0},
                      {"algbw_gbs", 1.5},
                      {"busbw_gbs", 1.5},
                      {"wrong", 0}});
    }
  }
  rows.push_back(trained("training", "mlp", 2, 32, 500));
  for (const int batch : {8, 32}) rows.push_back(trained("batch", "mlp", 2, batch, 10 * batch));
  for (const char* precision : {"f32", "bf16"}) {
    rows.push_back(trained("precision", "mlp", 2, 32, 500));
    rows.back()["precision"] = precision;
  }
  for (const char* compression : {"none", "bf16"}) {
    rows.push_back(trained("compression", "mlp", 2, 32, 500));
    rows.back()["compression"] = compression;
  }
  for (const auto& [ranks, batch, rate] :
       {std::tuple(1, 32, 300.0), std::tuple(1, 64, 320.0), std::tuple(2, 32, 570.0)}) {
    rows.push_back(trained("scaling", "mlp", ranks, batch, rate));
    rows.back()["weak_batch_size"] = 32;
    rows.back()["strong_batch_size_of_all"] = 64;
  }
  for (const int groups : {1, 2}) {
    rows.push_back({{"section", "fedavg"},
                    {"workload", "lr-10"},
                    {"system", "fedrun"},
                    {"ranks", 2},
                    {"groups", groups},
                    {"round_ms", 2.0 / groups},
                    {"fastest_ms", 0.5}});
  }
  return rows;
}

Results some_results() {
  Results results{.command = "fedrun bench -np 2 -x 'A=<b>'",
                  .started = "2026-01-02 03:04:05 UTC",
                  .device = "cpu",
                  .why_no_gpus = "CUDA is not in this build",
                  .ranks = 2};
  results.hosts = {{.host = "node1", .cpu = "Some CPU", .cores = 2}};
  results.software = {{"fedrun", "1.2.3"}, {"libtorch", "2.15.0"}};
  results.plan.steps = {{.name = "first", .command = {"fedrun", "-np", "2"}}, {.name = "second"}};
  results.plan.skipped = {{"GPUs", "CUDA is not in this build"}};
  results.outcomes = {{.rows = 4}, {.exit_code = 3, .log = "logs/02-x.txt"}};
  results.rows = some_rows();
  return results;
}

TEST(Page, HasAChapterWithPlotsAndATableForEverySection) {
  const std::vector<Chapter> chapters = make_chapters(some_rows());
  EXPECT_EQ(chapters.size(), section_names.size());
  for (const Chapter& chapter : chapters) {
    EXPECT_FALSE(chapter.figures.empty()) << name_of(chapter.section);
    EXPECT_FALSE(chapter.text.empty()) << name_of(chapter.section);
    ASSERT_FALSE(chapter.tables.empty()) << name_of(chapter.section);
    for (const Table& table : chapter.tables) {
      EXPECT_FALSE(table.rows.empty()) << name_of(chapter.section);
      for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.head.size()) << name_of(chapter.section);
    }
    for (const Figure& figure : chapter.figures) {
      EXPECT_THAT(figure.svg, AllOf(HasSubstr("<svg"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
    }
  }
}

TEST(Page, WeakAndStrongScalingAreToldApart) {
  const Chapter chapter = scaling_chapter(some_rows());
  const auto& rows = chapter.tables[0].rows;
  EXPECT_THAT(rows, ElementsAre(ElementsAre("weak", "mlp", "1", "1", "32", "300", "1", "100 %"),
                                ElementsAre("weak", "mlp", "2", "1", "32", "570", "1.9", "95 %"),
                                ElementsAre("strong", "mlp", "1", "1", "64", "320", "1", "100 %"),
                                ElementsAre("strong", "mlp", "2", "1", "32", "570", "1.78", "89 %")));
}

TEST(Page, SaysWhatItWasMeasuredOnAndWhatFailed) {
  const std::string html = to_html(some_results());
  for (const char* part : {"no GPU was used:</b> CUDA is not in this build", "node1", "Some CPU", "1.2.3", "2.15.0",
                           "2026-01-02 03:04:05 UTC", "fedrun bench -np 2 -x 'A=&lt;b&gt;'", "<td>GPUs</td>",
                           "second failed (exit code 3); see logs/02-x.txt", "prefers-color-scheme: dark"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  Results on_gpus = some_results();
  on_gpus.device = "cuda";
  EXPECT_THAT(to_html(on_gpus), AllOf(HasSubstr("Measured on GPUs"), Not(HasSubstr("no GPU was used"))));
}

TEST(Page, NeedsNoNetwork) {
  const std::string html = to_html(some_results());
  for (const char* part : {"http:", "https:", "//", "<script", "<link", "@import", "url("}) {
    EXPECT_THAT(html, Not(HasSubstr(part)));
  }
}

TEST(Results, AreCompleteOnlyWhereEveryStepMeasuredSomething) {
  Results results = some_results();
  EXPECT_FALSE(results.all_succeeded());
  results.outcomes[1] = {.exit_code = 0, .rows = 0};
  EXPECT_THAT(results.problems(), ElementsAre(HasSubstr("measured nothing")));
  results.outcomes.pop_back();
  EXPECT_THAT(results.problems(), ElementsAre("1 steps were not begun"));
  results.outcomes.push_back({.rows = 1});
  EXPECT_TRUE(results.all_succeeded());
  const nlohmann::ordered_json json = to_json(results);
  EXPECT_EQ(json.at("steps").size(), 2);
  EXPECT_EQ(json.at("steps")[0].at("command"), "fedrun -np 2");
  EXPECT_EQ(json.at("results").size(), some_rows().size());
  EXPECT_EQ(json.at("machine").at("hosts")[0].at("cpu"), "Some CPU");
}

}  // namespace
}  // namespace fedrun::bench::suite
