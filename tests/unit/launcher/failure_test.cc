// Who is to blame for a failed run, and what is said about ranks that do not come up.
#include <fedrun/launcher/failure_story.h>
#include <fedrun/launcher/memory_kills.h>
#include <fedrun/launcher/rank_reports.h>
#include <fedrun/launcher/start_watch.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fedrun::launcher {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

constexpr RunClock::time_point start{};

TEST(RankReports, SameErrorsAreShownOnce) {
  RankReports reports(false);
  const auto feed = [&](int rank, const std::string& error) {
    EXPECT_TRUE(reports.takes(rank, "fedrun: rank " + std::to_string(rank) + " on vm: " + error + "\n"));
    EXPECT_TRUE(reports.takes(rank, "  more\n"));
    EXPECT_FALSE(reports.takes(rank, "other\n"));
    return reports.settle(rank);
  };
  EXPECT_EQ(feed(2, "UsageError: bad"), "fedrun: rank 2 on vm: UsageError: bad\n  more\n");
  EXPECT_EQ(feed(1, "UsageError: bad"), "");
  EXPECT_EQ(feed(0, "UsageError: bad"), "");
  EXPECT_THAT(feed(1, "UsageError: bad"), StartsWith("fedrun: rank 1"));  // once more: that is news
  EXPECT_THAT(feed(3, "BackendError: other"), StartsWith("fedrun: rank 3"));
  EXPECT_EQ(reports.repeated(), "fedrun: the same error on ranks 0, 1 as on rank 2\n");
  EXPECT_TRUE(reports.is_told(1) && reports.is_told(2));
  EXPECT_FALSE(reports.is_told(4));
}

TEST(RankReports, VictimsWait) {
  RankReports reports(false);
  const std::string victim = "fedrun: rank 1 on vm: PeerLostError: rank 0 has ended\n";
  ASSERT_TRUE(reports.takes(1, victim));
  EXPECT_TRUE(reports.holds(1));
  EXPECT_EQ(reports.settle(1), "");
  EXPECT_TRUE(reports.lost_a_peer(1));
  EXPECT_EQ(reports.of_victims(), victim);
  RankReports all(true);
  all.takes(1, victim);
  EXPECT_EQ(all.settle(1), victim);
  EXPECT_EQ(all.of_victims(), "");
}

TEST(RankReports, WhatIsNone) {
  RankReports reports(false);
  for (const char* line : {"hello\n", "  indented\n", "fedrun: rank x on vm: a\n", "fedrun: rank 1: b\n",
                           "fedrun: rank 2 on vm: of another rank\n"}) {
    EXPECT_FALSE(reports.takes(1, line)) << line;
  }
  EXPECT_EQ(reports.settle(1), "");
}

TEST(RankReports, NeverHoldsMoreThanAMessage) {
  RankReports reports(false);
  reports.takes(1, "fedrun: rank 1 on vm: UsageError: bad\n");
  int taken = 0;
  while (taken < 10000 && reports.takes(1, "  a line that continues it\n")) ++taken;
  EXPECT_LT(taken, 10000);
}

RunRecord ended(const std::vector<std::pair<int, RankEnding>>& endings) {
  RunRecord record({"a", "a", "b"}, start);
  for (const auto& [rank, ending] : endings) record.end(rank, ending, start + seconds(3));
  return record;
}

TEST(FindCause, ByTable) {
  const RankEnding fine;
  const RankEnding exited = {.exit_code = 3};
  const RankEnding killed = {.signal = 9};
  const RankEnding told = {.signal = 15, .told_to_end = true};
  const struct {
    const char* what;
    std::vector<std::pair<int, RankEnding>> endings;
    std::vector<int> victims;
    std::optional<int> cause;
  } cases[] = {
      {"nobody ended", {}, {}, {}},
      {"all well", {{0, fine}, {1, fine}}, {}, {}},
      {"the first that failed", {{1, exited}, {0, exited}}, {}, 1},
      {"not those that were told to", {{0, told}, {2, killed}, {1, told}}, {}, 2},
      {"not one that lost another", {{0, exited}, {2, killed}}, {0}, 2},
      {"unless there is no other", {{0, exited}, {1, exited}}, {0, 1}, 0},
      {"all were told to", {{0, told}, {1, told}}, {}, {}},
  };
  for (const auto& example : cases) {
    RankReports reports(false);
    for (const int rank : example.victims) {
      reports.takes(rank, "fedrun: rank " + std::to_string(rank) + " on a: PeerLostError: x\n");
      reports.settle(rank);
    }
    EXPECT_EQ(find_cause(ended(example.endings), reports), example.cause) << example.what;
  }
}

TEST(FailureStory, SaysWhoHowAndWhen) {
  const RunRecord record = ended({{2, {.signal = 11}}});
  EXPECT_THAT(how_it_ended(record, 2, std::chrono::system_clock::now(), start + seconds(4)),
              StartsWith("rank 2 on b was ended by signal 11 (Segmentation fault) after 3.0 s, at "));
}

TEST(FailureStory, KeepsTheLastLines) {
  RunRecord record({"a"}, start);
  EXPECT_EQ(last_lines(record, 0), "");
  for (int i = 0; i < 12; ++i) record.keep_line(0, "line " + std::to_string(i) + "\r\n");
  const std::string text = last_lines(record, 0);
  EXPECT_THAT(text, StartsWith("fedrun: the last lines of rank 0:\n  line 2\n  line 3\n"));
  EXPECT_THAT(text, testing::EndsWith("  line 11\n"));
  record.keep_line(0, std::string(100000, 'x'));
  EXPECT_LT(last_lines(record, 0).size(), 2000U);
}

TEST(StartWatch, IsSilentOnceAllAreUp) {
  RunRecord record({"a", "b"}, start);
  StartWatch watch(seconds(10));
  EXPECT_EQ(watch.next(record), start + seconds(5));
  record.ranks[0].started = record.ranks[1].started = true;
  record.ranks[0].joined = true;
  EXPECT_TRUE(watch.next(record));
  record.end(1, {}, start);  // one that has ended needs not join
  EXPECT_EQ(watch.next(record), std::nullopt);
  EXPECT_EQ(watch.problem(record, start + seconds(20)), std::nullopt);
}

TEST(StartWatch, ShowsProgressLessAndLessOften) {
  RunRecord record({"a", "a", "b"}, start);
  record.ranks[0].started = record.ranks[0].begun = true;
  StartWatch watch(std::nullopt);
  EXPECT_EQ(watch.progress(record, start + seconds(4)), "");
  EXPECT_EQ(watch.progress(record, start + seconds(5)),
            "fedrun: waiting for the ranks to come up, 5 s so far: a: 1 of 2 started, 0 connected; b: 0 of 1 started, "
            "0 connected\n");
  EXPECT_EQ(watch.progress(record, start + seconds(9)), "");
  EXPECT_NE(watch.progress(record, start + seconds(10)), "");
  EXPECT_EQ(watch.progress(record, start + seconds(19)), "");
}

TEST(StartWatch, NamesWhatIsMissing) {
  RunRecord record({"a", "a", "b"}, start);
  const StartWatch watch(seconds(10));
  const auto late = start + seconds(10);
  EXPECT_EQ(watch.problem(record, start + seconds(9)), std::nullopt);
  record.ranks[1].started = true;
  EXPECT_THAT(*watch.problem(record, late), StartsWith("ranks 0 on a and 2 on b did not start within 10 s"));
  for (RankRecord& rank : record.ranks) rank.started = true;
  record.ranks[0].begun = record.ranks[2].begun = true;
  EXPECT_THAT(*watch.problem(record, late), StartsWith("rank 1 on a started, but made no fedrun::Session within 10 s"));
  EXPECT_THAT(*watch.problem(record, late), HasSubstr("--debug-rank 1"));
  record.ranks[1].begun = true;
  EXPECT_THAT(*watch.problem(record, late), StartsWith("ranks 0, 1 on a and 2 on b could not connect to the others"));
}

TEST(StartWatch, WithoutALimitRanksMustOnlyStart) {
  RunRecord record({"a", "a"}, start);
  const StartWatch watch(std::nullopt);
  EXPECT_TRUE(watch.problem(record, start + seconds(1000)));
  for (RankRecord& rank : record.ranks) rank.started = true;
  EXPECT_EQ(watch.problem(record, start + seconds(1000)), std::nullopt);
  EXPECT_EQ(watch.next(record), std::nullopt);  // it may be no program of fedrun's
  record.ranks[0].begun = true;
  EXPECT_TRUE(watch.next(record));  // it is, so progress is worth showing
}

TEST(MemoryKills, AreFoundInTheKernelsCounts) {
  EXPECT_EQ(parse_memory_kills("low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\noom_group_kill 0\n"), 4);
  EXPECT_EQ(parse_memory_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"), 2);
  EXPECT_EQ(parse_memory_kills("nr_free_pages 5\noom_kill 7\n"), 7);
  EXPECT_EQ(parse_memory_kills(""), std::nullopt);
  EXPECT_EQ(parse_memory_kills("oom_kill"), std::nullopt);
  EXPECT_GE(count_memory_kills(), 0);
}

}  // namespace
}  // namespace fedrun::launcher
