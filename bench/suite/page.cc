#include "page.h"

#include <fedrun/launcher/shell_words.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "chapter.h"
#include "page_style.h"
#include "plot.h"

namespace fedrun::bench::suite {
namespace {

// A table longer than this is folded up.
constexpr std::size_t longest_open_table = 16;

// With a short unit behind it, or none; a version is no number.
bool is_number(const std::string& text) {
  constexpr std::size_t longest_unit = 4;
  const std::size_t unit = text.find_first_not_of("0123456789.");
  if (unit == 0 || text.empty() || std::count(text.begin(), text.end(), '.') > 1) return false;
  return unit == std::string::npos || (text[unit] == ' ' && text.size() - unit - 1 <= longest_unit);
}

// Numbers are compared by their last digits, so they end below each other.
std::string cell_html(const char* tag, const std::string& text, const std::string& looks_like) {
  return fmt::format("<{0}{1}>{2}</{0}>", tag, is_number(looks_like) ? " class=\"number\"" : "", escape(text));
}

// What the column of this index holds, in the first row that has something there.
std::string example(const Table& table, std::size_t column) {
  for (const auto& row : table.rows) {
    if (!row[column].empty()) return row[column];
  }
  return {};
}

std::string table_html(const Table& table) {
  std::string html = "<div class=\"table\"><table><thead><tr>";
  for (std::size_t i = 0; i < table.head.size(); ++i) html += cell_html("th", table.head[i], example(table, i));
  html += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) html += cell_html("td", row[i], example(table, i));
    html += "</tr>\n";
  }
  html += "</tbody></table></div>\n";
  if (table.rows.size() <= longest_open_table) return html;
  return fmt::format("<details><summary>Table of {} rows</summary>{}</details>\n", table.rows.size(), html);
}

std::string chapter_html(const Chapter& chapter) {
  std::string html = fmt::format("<h2 id=\"{}\">{}</h2>\n<p>{}</p>\n", name_of(chapter.section),
                                 escape(title_of(chapter.section)), escape(chapter.text));
  const bool small = chapter.figures.front().is_small;
  html += fmt::format("<div class=\"figures{}\">\n", small ? " small" : "");
  for (const Figure& figure : chapter.figures) {
    html += fmt::format("<figure><figcaption>{}</figcaption>{}</figure>\n", escape(figure.title), figure.svg);
  }
  html += "</div>\n";
  for (const Table& table : chapter.tables) html += table_html(table);
  return html;
}

// What the numbers are about, before anybody reads one.
std::string summary_html(const Results& results) {
  const std::string where = fmt::format("{} {} on {} {}", results.ranks, results.ranks == 1 ? "rank" : "ranks",
                                        results.host_count, results.host_count == 1 ? "host" : "hosts");
  std::string html = fmt::format("<h1>fedrun benchmarks</h1>\n<p class=\"soft\">{}, {}, fedrun {}</p>\n",
                                 escape(results.started), where, escape(text(results.software, "fedrun")));
  html += results.device == "cuda"
              ? "<p class=\"note\"><b>Measured on GPUs</b>, each rank on one of its own, through NCCL.</p>\n"
              : fmt::format(
                    "<p class=\"note\"><b>Measured on CPU ranks; no GPU was used:</b> {}. Nothing on this page says "
                    "how fast GPUs would be.</p>\n",
                    escape(results.why_no_gpus));
  if (results.quick) {
    html +=
        "<p class=\"note\"><b>A quick run</b> (--quick): few repetitions and small sizes. Good for seeing that "
        "everything "
        "works, not for comparing machines.</p>\n";
  }
  const auto problems = results.problems();
  if (!problems.empty()) {
    html += "<div class=\"note bad\"><b>Not everything was measured:</b><ul>";
    for (const std::string& problem : problems) html += fmt::format("<li>{}</li>", escape(problem));
    html += "</ul></div>\n";
  }
  return html;
}

std::string gpus_of(const HostDescription& host) {
  if (host.gpus.empty()) return "none";
  std::map<std::string, int> counts;
  for (const Gpu& gpu : host.gpus) ++counts[fmt::format("{}, {}", gpu.name, gpu.memory)];
  std::vector<std::string> kinds;
  for (const auto& [kind, count] : counts) kinds.push_back(fmt::format("{} × {}", count, kind));
  return fmt::format("{}; driver {}", fmt::join(kinds, "; "), host.gpu_driver);
}

std::string machine_html(const Results& results) {
  std::string html = "<h2 id=\"machine\">Machine</h2>\n";
  Table hosts{.head = {"host", "CPU", "cores", "memory", "SIMD", "GPUs", "system", "mpirun", "load before"}};
  for (const HostDescription& host : results.hosts) {
    hosts.rows.push_back({host.host, host.cpu, std::to_string(host.cores), fmt::format("{:.1f} GiB", host.memory_gib),
                          fmt::format("{}", fmt::join(host.simd, " ")), gpus_of(host),
                          fmt::format("{}, Linux {}", host.system, host.kernel),
                          host.open_mpi.empty() ? "none" : "Open MPI " + host.open_mpi,
                          fmt::format("{:.2f}", host.load)});
  }
  html += table_html(hosts);
  Table software{.head = {"built with", "version"}};
  for (const auto& [name, version] : results.software.items()) {
    software.rows.push_back({name, version.get<std::string>()});
  }
  html += table_html(software);
  return html + fmt::format("<p>Command: <code>{}</code></p>\n", escape(results.command));
}

std::string skipped_html(const Results& results) {
  if (results.plan.skipped.empty()) return {};
  Table table{.head = {"not measured", "why"}};
  for (const Skipped& skip : results.plan.skipped) table.rows.push_back({skip.what, skip.why});
  return "<h2 id=\"skipped\">Not measured</h2>\n" + table_html(table);
}

std::string steps_html(const Results& results) {
  std::string html =
      "<h2 id=\"commands\">Commands</h2>\n<p>Each can be pasted into a shell. What they printed is in <a "
      "href=\"logs\">logs</a>; "
      "all rows are in <a href=\"results.json\">results.json</a> and <a href=\"results.csv\">results.csv</a>.</p>\n"
      "<div class=\"table\"><table><thead><tr><th>part</th><th>seconds</th><th>rows</th><th>exit "
      "code</th>"
      "<th>command</th></tr></thead><tbody>\n";
  for (std::size_t i = 0; i < results.outcomes.size(); ++i) {
    const Step& step = results.plan.steps[i];
    const StepOutcome& outcome = results.outcomes[i];
    html += fmt::format("<tr><td>{}: {}</td><td>{:.1f}</td><td>{}</td><td{}>{}</td><td><code>{}</code></td></tr>\n",
                        name_of(step.section), escape(step.name), outcome.seconds, outcome.rows,
                        outcome.succeeded() ? "" : " class=\"bad\"", outcome.exit_code,
                        escape(launcher::shell_line(step.command)));
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace

std::string to_html(const Results& results) {
  const std::vector<Chapter> chapters = make_chapters(results.rows);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>fedrun benchmarks, {}</title>\n<style>{}</style>\n"
      "</head>\n<body>\n",
      escape(results.started), page_style);
  html += summary_html(results);
  html += "<nav>";
  for (const Chapter& chapter : chapters) {
    html += fmt::format("<a href=\"#{}\">{}</a> ", name_of(chapter.section), escape(title_of(chapter.section)));
  }
  html +=
      "<a href=\"#machine\">Machine</a> <a href=\"#skipped\">Not measured</a> <a "
      "href=\"#commands\">Commands</a></nav>\n";
  for (const Chapter& chapter : chapters) html += chapter_html(chapter);
  return html + machine_html(results) + skipped_html(results) + steps_html(results) + "</body>\n</html>\n";
}

}  // namespace fedrun::bench::suite
