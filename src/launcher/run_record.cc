#include <fedrun/launcher/run_record.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace fedrun::launcher {

RunRecord::RunRecord(const std::vector<std::string>& hosts, RunClock::time_point now)
    : started_at(now), ranks(hosts.size()) {
  for (size_t rank = 0; rank < hosts.size(); ++rank) ranks[rank].host = hosts[rank];
}

void RunRecord::keep_line(int rank, std::string_view line) {
  constexpr size_t most_bytes = 1000;  // a longer one was seen when it came
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  std::deque<std::string>& lines = ranks[static_cast<size_t>(rank)].last_lines;
  lines.emplace_back(line.substr(0, most_bytes));
  if (lines.size() > last_lines_kept) lines.pop_front();
}

void RunRecord::end(int rank, RankEnding ending, RunClock::time_point now) {
  RankRecord& record = ranks[static_cast<size_t>(rank)];
  record.ending = std::move(ending);
  record.ended_at = now;
  order_of_ends.push_back(rank);
}

std::vector<int> ranks_that(const RunRecord& record, bool (*test)(const RankRecord&)) {
  std::vector<int> list;
  for (size_t rank = 0; rank < record.ranks.size(); ++rank) {
    if (test(record.ranks[rank])) list.push_back(static_cast<int>(rank));
  }
  return list;
}

std::string by_host(const RunRecord& record, const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < ranks.size();) {
    const std::string& host = record.ranks[static_cast<size_t>(ranks[begin])].host;
    size_t end = begin;
    while (end < ranks.size() && record.ranks[static_cast<size_t>(ranks[end])].host == host) ++end;
    parts.push_back(fmt::format("{} on {}",
                                fmt::join(ranks.begin() + static_cast<std::ptrdiff_t>(begin),
                                          ranks.begin() + static_cast<std::ptrdiff_t>(end), ", "),
                                host));
    begin = end;
  }
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(parts, " and "));
}

}  // namespace fedrun::launcher
