// What was measured of single clients: averages over their samples, and who is worst, in the middle and best.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/train/meter.h>

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::fl {

struct ClientResult {
  std::size_t client = 0;
  double samples = 0;  // that the value is the mean of
  double value = 0;
};

// Used by one thread. Values that are not finite count as measured, but not in averages.
class ResultAggregator {
 public:
  // The metrics of one client; those without samples count for nothing.
  void add(std::size_t client, const Meter& metrics);

  std::vector<std::string> metrics() const;  // in alphabetical order

  // These throw UsageError for a metric that no client has.
  double mean(std::string_view metric) const;                               // each sample counts the same
  const std::vector<ClientResult>& clients(std::string_view metric) const;  // in the order in which they were added

  // Ordered by value, the lowest first; what is not finite comes last.
  std::vector<ClientResult> ranked(std::string_view metric) const;

  // Collective: those of all ranks together, ordered by client.
  ResultAggregator over_ranks(Communicator& group) const;

 private:
  std::map<std::string, std::vector<ClientResult>, std::less<>> results_;
};

}  // namespace fedrun::fl
