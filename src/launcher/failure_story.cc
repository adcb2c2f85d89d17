#include <fedrun/launcher/failure_story.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

namespace fedrun::launcher {

std::optional<int> find_cause(const RunRecord& record, const RankReports& reports) {
  std::optional<int> victim;
  for (const int rank : record.order_of_ends) {
    const RankEnding& ending = *record.ranks[static_cast<size_t>(rank)].ending;
    if (!ending.failed() || ending.told_to_end) continue;
    if (!reports.lost_a_peer(rank)) return rank;
    if (!victim) victim = rank;
  }
  return victim;
}

std::string how_it_ended(const RunRecord& record, int rank, std::chrono::system_clock::time_point wall_clock,
                         RunClock::time_point now) {
  const RankRecord& failed = record.ranks[static_cast<size_t>(rank)];
  const std::chrono::duration<double> after = failed.ended_at - record.started_at;
  const auto when = wall_clock - std::chrono::duration_cast<std::chrono::system_clock::duration>(now - failed.ended_at);
  return fmt::format("rank {} on {} {} after {:.1f} s, at {:%H:%M:%S}", rank, failed.host, in_words(*failed.ending),
                     after.count(), fmt::localtime(std::chrono::system_clock::to_time_t(when)));
}

std::string last_lines(const RunRecord& record, int rank) {
  std::string text;
  for (const std::string& line : record.ranks[static_cast<size_t>(rank)].last_lines) text += "  " + line + "\n";
  return text.empty() ? text : fmt::format("fedrun: the last lines of rank {}:\n", rank) + text;
}

}  // namespace fedrun::launcher
