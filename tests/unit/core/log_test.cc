#include <fedrun/core/error.h>
#include <fedrun/core/log.h>
#include <gtest/gtest.h>

#include <string>

namespace fedrun {
namespace {

std::string captured(const log::Settings& settings) {
  log::configure(settings);
  testing::internal::CaptureStderr();
  log::debug("{} cores", 2);
  log::info("{} cores", 2);
  log::warn("{} cores", 2);
  log::error("{} cores", 2);
  const std::string output = testing::internal::GetCapturedStderr();
  log::configure({});
  return output;
}

TEST(Log, PrefixesTheRankAndTheLevel) {
  EXPECT_EQ(captured({LogLevel::warn, "[rank 1] "}), "[rank 1] warning: 2 cores\n[rank 1] error: 2 cores\n");
}

TEST(Log, ShowsWhatTheLevelAllows) {
  EXPECT_EQ(captured({LogLevel::debug, ""}), "debug: 2 cores\ninfo: 2 cores\nwarning: 2 cores\nerror: 2 cores\n");
  EXPECT_EQ(captured({LogLevel::off, ""}), "");
}

TEST(Log, TakesThePrefixLiterally) { EXPECT_EQ(captured({LogLevel::error, "100%v "}), "100%v error: 2 cores\n"); }

TEST(Log, LevelsRoundTripAndRefuseOthers) {
  for (const char* word : {"debug", "info", "warn", "error", "off"}) EXPECT_EQ(to_string(parse_log_level(word)), word);
  EXPECT_THROW(parse_log_level("verbose"), UsageError);
  EXPECT_THROW(parse_log_level(""), UsageError);
}

}  // namespace
}  // namespace fedrun
