// Says which rank ended a run, and how.
#pragma once

#include <fedrun/launcher/rank_reports.h>
#include <fedrun/launcher/run_record.h>

#include <optional>
#include <string>

namespace fedrun::launcher {

// The rank that failed first. One that failed because mpirun told it to end, or because it lost another rank, comes
// into question only when there is no other.
std::optional<int> find_cause(const RunRecord& record, const RankReports& reports);

// "rank 1 on a was ended by signal 9 (Killed) after 3.2 s, at 14:05:09"
std::string how_it_ended(const RunRecord& record, int rank, std::chrono::system_clock::time_point wall_clock,
                         RunClock::time_point now);

// What the rank wrote last, for when it no longer stands at the bottom of the screen.
std::string last_lines(const RunRecord& record, int rank);

}  // namespace fedrun::launcher
