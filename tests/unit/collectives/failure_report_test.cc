#include <fedrun/collectives/failure_report.h>
#include <fedrun/core/error.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace fedrun {
namespace {

Topology rank_1_of_2() {
  Topology place;
  place.rank = 1;
  place.size = 2;
  place.host = "node-a";
  return place;
}

TEST(DescribeFailure, NamesRankHostAndKind) {
  EXPECT_EQ(describe_failure(rank_1_of_2(), std::make_exception_ptr(UsageError("no data"))),
            "fedrun: rank 1 on node-a: UsageError: no data");
  EXPECT_EQ(describe_failure(rank_1_of_2(), std::make_exception_ptr(std::runtime_error("odd"))),
            "fedrun: rank 1 on node-a: error: odd");
  EXPECT_EQ(describe_failure(rank_1_of_2(), std::make_exception_ptr(42)),
            "fedrun: rank 1 on node-a: error: an exception that is not a std::exception");
}

TEST(DescribeFailure, LeavesTheRankOutWhereThereIsOnlyOne) {
  EXPECT_EQ(describe_failure(Topology{}, std::make_exception_ptr(BackendError("gone"))), "fedrun: BackendError: gone");
}

TEST(DescribeFailure, IndentsLaterLines) {
  EXPECT_EQ(describe_failure(Topology{}, std::make_exception_ptr(UsageError("a\nb\nc"))),
            "fedrun: UsageError: a\n  b\n  c");
}

TEST(ReportUncaughtExceptions, PrintsAndExitsWithOne) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        report_uncaught_exceptions(rank_1_of_2());
        std::thread([] { throw UsageError("from a thread"); }).join();
      },
      testing::ExitedWithCode(1), "fedrun: rank 1 on node-a: UsageError: from a thread\n");
}

}  // namespace
}  // namespace fedrun
