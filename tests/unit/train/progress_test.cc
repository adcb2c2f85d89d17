#include <fedrun/train/progress.h>
#include <gtest/gtest.h>

namespace fedrun {
namespace {

TEST(Progress, ShowsShareRateAndTimeLeft) {
  EXPECT_EQ(render_progress({.terminal_columns = 75, .total_samples = 60'000}, 15'000, 5),
            "[=====               ]  25 % · 15,000/60,000 · 3,000 samples/s · 15 s left");
}

TEST(Progress, FitsANarrowTerminal) {
  EXPECT_EQ(render_progress({.terminal_columns = 30, .total_samples = 60'000}, 15'000, 5), " 25 %");
}

TEST(Progress, SurvivesExtremes) {
  EXPECT_NE(render_progress({.terminal_columns = 80, .total_samples = 0}, 0, 0).find("100 %"), std::string::npos);
  EXPECT_NE(render_progress({.terminal_columns = 80, .total_samples = 10}, 20, 1).find("100 %"), std::string::npos);
  EXPECT_NE(render_progress({.terminal_columns = 80, .total_samples = 10}, 0, 0).find("  0 %"), std::string::npos);
}

TEST(ProgressBar, PrintsPlainLinesWhereThereIsNoTerminal) {
  testing::internal::CaptureStdout();
  {
    ProgressBar bar({.terminal_columns = 0, .total_samples = 10});
    bar.advance(5);
    bar.print_line("half");
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "half\n");
}

TEST(ProgressBar, KeepsLinesAboveTheBarAndCleansUp) {
  testing::internal::CaptureStdout();
  {
    ProgressBar bar({.terminal_columns = 20, .total_samples = 10});
    bar.advance(5);
    bar.print_line("half");
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "\r 50 %\x1b[K\r\x1b[Khalf\n\r 50 %\x1b[K\r\x1b[K");
}

}  // namespace
}  // namespace fedrun
