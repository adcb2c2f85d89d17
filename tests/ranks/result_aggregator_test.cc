#include <fedrun/core/error.h>
#include <fedrun/fl/result_aggregator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/error_text.h"
#include "support/rank_test.h"

namespace fedrun::fl {
namespace {

using test::rank;
using test::ranks;
using test::usage_error_of;
using test::world;
using testing::ElementsAre;
using testing::HasSubstr;

Meter meter(double value, double samples) {
  Meter metrics;
  metrics.add("accuracy", value, samples);
  return metrics;
}

std::vector<std::size_t> clients_of(const std::vector<ClientResult>& results) {
  std::vector<std::size_t> clients;
  for (const ClientResult& result : results) clients.push_back(result.client);
  return clients;
}

TEST(ResultAggregator, WeighsBySamplesAndRanks) {
  ResultAggregator results;
  results.add(0, meter(0.5, 1));
  results.add(7, meter(std::numeric_limits<double>::quiet_NaN(), 2));
  results.add(1, meter(0.25, 3));
  results.add(2, meter(0, 0));
  EXPECT_THAT(results.metrics(), ElementsAre("accuracy"));
  EXPECT_DOUBLE_EQ(results.mean("accuracy"), 1.25 / 4);
  EXPECT_THAT(clients_of(results.ranked("accuracy")), ElementsAre(1, 0, 7));
  EXPECT_EQ(usage_error_of([&] { results.mean("loss"); }), "no client has the metric 'loss', only 'accuracy'");
}

TEST(ResultAggregator, PutsRanksTogether) {
  ResultAggregator mine;
  // The last of several ranks has no clients.
  if (ranks() == 1 || !test::is_last_rank()) {
    for (const int client : {rank(), rank() + 10}) mine.add(static_cast<std::size_t>(client), meter(client, 1));
  }
  const ResultAggregator all = mine.over_ranks(world());
  std::vector<std::size_t> expected;
  for (const int first : {0, 10}) {
    for (int i = 0; i < std::max(1, ranks() - 1); ++i) expected.push_back(static_cast<std::size_t>(first + i));
  }
  EXPECT_EQ(clients_of(all.clients("accuracy")), expected);
  EXPECT_EQ(all.clients("accuracy").back().value, static_cast<double>(expected.back()));
}

}  // namespace
}  // namespace fedrun::fl
