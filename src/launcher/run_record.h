// What fedrun knows of each rank of a run: where it is, how far it has come, how it ended, and its last lines.
#pragma once

#include <fedrun/launcher/rank_events.h>

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

using RunClock = std::chrono::steady_clock;

struct RankRecord {
  std::string host;  // where it shall run; where it does, once it has started
  bool started = false;
  bool begun = false;   // to connect to the others
  bool joined = false;  // connected to all of them
  std::optional<RankEnding> ending;
  RunClock::time_point ended_at;
  std::deque<std::string> last_lines;

  // A program that is none of fedrun's never joins; its ranks just end.
  bool has_come_up() const { return joined || ending; }
};

constexpr size_t last_lines_kept = 10;

struct RunRecord {
  // `hosts`: for each rank, where it shall run.
  RunRecord(const std::vector<std::string>& hosts, RunClock::time_point now);

  void keep_line(int rank, std::string_view line);
  void end(int rank, RankEnding ending, RunClock::time_point now);

  RunClock::time_point started_at;
  std::vector<RankRecord> ranks;
  std::vector<int> order_of_ends;
};

std::vector<int> ranks_that(const RunRecord& record, bool (*test)(const RankRecord&));

// "rank 3 on node2", "ranks 2, 3 on node2 and 5 on node3"
std::string by_host(const RunRecord& record, const std::vector<int>& ranks);

}  // namespace fedrun::launcher
