// Writes what all ranks' timelines remember into one file that chrome://tracing and Perfetto show.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/collectives/timeline.h>

#include <chrono>
#include <string>
#include <vector>

namespace fedrun {

// What to add to this rank's clock to get rank 0's. Collective.
std::chrono::nanoseconds find_clock_offset(Communicator& world);

// Collective: throws UsageError on every rank if rank 0 cannot write there.
void check_timeline_path(Communicator& world, const std::string& path);

struct TimelineOfRank {
  int rank = 0;
  std::string host{};
  std::chrono::nanoseconds clock_offset{};
  std::vector<TimelineEvent> events{};
};

// Collective: rank 0 writes the file.
void write_timeline(Communicator& world, const TimelineOfRank& own, const std::string& path);
// For a rank that is being ended by an exception and cannot talk to the others any more.
void write_timeline_alone(const TimelineOfRank& own, const std::string& path);

}  // namespace fedrun
