#include <fedrun/launcher/run_record.h>

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

}  // namespace fedrun::launcher
