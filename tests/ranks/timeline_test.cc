// The timeline: one file with the operations of all ranks, on one clock.
#include <fedrun/core/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "support/error_text.h"
#include "support/rank_test.h"

namespace fedrun {
namespace {

using test::process;
using test::usage_error_of;
using test::world;
using testing::HasSubstr;

// The same on every rank; the file is rank 0's.
std::string path() {
  std::int64_t pid = ::getpid();
  world().broadcast(std::span(&pid, 1));
  return testing::TempDir() + "fedrun_timeline_" + std::to_string(pid) + ".json";
}

struct Span {
  double begin;
  double end;
};

// By title and rank.
std::map<std::pair<std::string, int>, Span> spans_in(const std::string& file) {
  std::ifstream text(file);
  const nlohmann::json trace = nlohmann::json::parse(text);
  std::map<std::pair<std::string, int>, Span> spans;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts");
    spans[{event.at("name"), event.at("pid")}] = {begin, begin + event.at("dur").get<double>()};
  }
  return spans;
}

TEST(Timeline, HoldsTheOperationsOfAllRanksOnOneClock) {
  const std::string file = path();
  process().start_timeline(file);
  EXPECT_THAT(usage_error_of([&] { process().start_timeline(file); }), HasSubstr("stop it before the next"));
  // The last rank keeps the others waiting, and all of them see that.
  if (world().rank() == world().size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::vector<float> values(50'000, 1);
  world().allreduce(values, {.op = ReduceOp::sum, .name = "\"quoted\"\n"});
  const auto first = world().barrier_async({.name = "under way"});
  world().barrier();
  first->wait();
  process().stop_timeline();
  EXPECT_THAT(usage_error_of([] { process().stop_timeline(); }), HasSubstr("no timeline"));
  world().barrier();
  if (world().rank() != 0) return;
  const auto spans = spans_in(file);
  double last_submitted = 0;
  double first_finished = 1e300;
  for (int rank = 0; rank < world().size(); ++rank) {
    ASSERT_TRUE(spans.contains({"barrier under way", rank})) << rank;
    const Span reduced = spans.at({"allreduce \"quoted\"\n", rank});
    last_submitted = std::max(last_submitted, reduced.begin);
    first_finished = std::min(first_finished, reduced.end);
    const bool has_waited = world().size() > 1 && rank == 0;
    EXPECT_GT(reduced.end - reduced.begin, has_waited ? 50e3 : 0);
  }
  EXPECT_GE(first_finished, last_submitted);  // as it must be, if the clocks are aligned
  std::remove(file.c_str());
}

TEST(Timeline, RefusesAFileThatCannotBeWritten) {
  EXPECT_THAT(usage_error_of([] { process().start_timeline("/nonexistent/trace.json"); }),
              HasSubstr("rank 0 cannot write the timeline to '/nonexistent/trace.json'"));
}

}  // namespace
}  // namespace fedrun
