#include <fedrun/launcher/mpirun_messages.h>
#include <fedrun/launcher/rank_reports.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fedrun::launcher {
namespace {

constexpr size_t longest_report_bytes = size_t{64} * 1024;

bool tells_of_lost_peer(const RankReport& report) { return report.error.starts_with("PeerLostError: "); }

}  // namespace

bool RankReports::takes(int rank, std::string_view line) {
  if (const auto held = held_.find(rank); held != held_.end()) {
    if (!line.starts_with("  ") || held->second.size() > longest_report_bytes) return false;
    held->second += line;
    return true;
  }
  const auto report = parse_rank_report(line);
  if (!report || report->rank != rank) return false;
  held_[rank] = line;
  return true;
}

bool RankReports::lost_a_peer(int rank) const {
  const auto held = held_.find(rank);
  return victims_.contains(rank) || (held != held_.end() && tells_of_lost_peer(*parse_rank_report(held->second)));
}

bool RankReports::is_told(int rank) const {
  return std::any_of(shown_.begin(), shown_.end(), [&](const Shown& shown) {
    return std::find(shown.ranks.begin(), shown.ranks.end(), rank) != shown.ranks.end();
  });
}

std::string RankReports::settle(int rank) {
  const auto held = held_.extract(rank);
  if (held.empty()) return {};
  const std::string& text = held.mapped();
  const RankReport report = *parse_rank_report(text);
  if (tells_of_lost_peer(report)) {
    victims_[rank] = text;
    return show_all_ ? text : "";
  }
  const auto same =
      std::find_if(shown_.begin(), shown_.end(), [&](const Shown& shown) { return shown.error == report.error; });
  if (same == shown_.end()) {
    shown_.push_back({std::string(report.error), {rank}});
    return text;
  }
  const bool news = std::find(same->ranks.begin(), same->ranks.end(), rank) != same->ranks.end();
  if (!news) same->ranks.push_back(rank);
  return news || show_all_ ? text : "";
}

std::string RankReports::repeated() const {
  std::string lines;
  for (const Shown& shown : shown_) {
    if (shown.ranks.size() < 2 || show_all_) continue;
    std::vector<int> others(shown.ranks.begin() + 1, shown.ranks.end());
    std::sort(others.begin(), others.end());
    lines += fmt::format("fedrun: the same error on rank{} {} as on rank {}\n", others.size() == 1 ? "" : "s",
                         fmt::join(others, ", "), shown.ranks[0]);
  }
  return lines;
}

std::string RankReports::of_victims() const {
  std::string text;
  if (show_all_) return text;  // they were shown already
  for (const auto& [rank, report] : victims_) text += report;
  return text;
}

}  // namespace fedrun::launcher
