#include <fedrun/launcher/check_table.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace fedrun::launcher {
namespace {

const char* word(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::warning:
      return "warning";
    case Verdict::failed:
      return "FAILED";
  }
  return "";
}

struct Widths {
  size_t host;
  size_t check;
};

Widths widths_of(const std::vector<CheckRow>& rows) {
  Widths widths{.host = std::string_view("host").size(), .check = std::string_view("check").size()};
  for (const CheckRow& row : rows) {
    widths.host = std::max(widths.host, row.host.size());
    widths.check = std::max(widths.check, row.check.size());
  }
  return widths;
}

std::string line(const Widths& widths, std::string_view host, std::string_view check, std::string_view verdict,
                 std::string_view rest) {
  return fmt::format("{:<{}}  {:<{}}  {:<7}  {}\n", host, widths.host, check, widths.check, verdict, rest);
}

std::string lines(const Widths& widths, const CheckRow& row) {
  std::string text = line(widths, row.host, row.check, word(row.verdict), row.what);
  if (!row.remedy.empty()) text += line(widths, "", "", "", "→ " + row.remedy);
  return text;
}

std::string counted(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string summary(const std::vector<CheckRow>& rows) {
  size_t warnings = 0;
  size_t failures = 0;
  std::set<std::string> failed_hosts;
  for (const CheckRow& row : rows) {
    warnings += row.verdict == Verdict::warning;
    failures += row.verdict == Verdict::failed;
    if (row.verdict == Verdict::failed) failed_hosts.insert(row.host);
  }
  const std::string warned = warnings > 0 ? fmt::format(", {}", counted(warnings, "warning")) : "";
  if (failures == 0) return fmt::format("passed{}: a run can start on these hosts\n", warned);
  return fmt::format("{} FAILED ({}){}: fedrun starts nothing there until that is mended\n", counted(failures, "check"),
                     fmt::join(failed_hosts, ", "), warned);
}

}  // namespace

std::string check_table(const PreflightResult& result) {
  const Widths widths = widths_of(result.rows);
  std::string text = line(widths, "host", "check", "verdict", "found");
  for (const CheckRow& row : result.rows) text += lines(widths, row);
  return text + "\n" + summary(result.rows);
}

std::string check_failures(const PreflightResult& result) {
  std::vector<CheckRow> failures;
  std::copy_if(result.rows.begin(), result.rows.end(), std::back_inserter(failures),
               [](const CheckRow& row) { return row.verdict == Verdict::failed; });
  const Widths widths = widths_of(failures);
  std::string text;
  for (const CheckRow& row : failures) text += lines(widths, row);
  return text;
}

}  // namespace fedrun::launcher
