#include <fedrun/train/progress.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace fedrun {
namespace {

using testing::HasSubstr;

constexpr ProgressValues values{.loss = 0.1234, .communication_seconds = 0.2};

TEST(Progress, ShowsShareRateAndTimeLeft) {
  EXPECT_EQ(render_progress({.terminal_columns = 75, .total_samples = 60'000}, 15'000, 5),
            "[====>               ]  25 % · 15,000/60,000 · 3,000 samples/s · 15 s left");
}

TEST(Progress, ShowsLossAndCommunicationWhereTheyAreKnown) {
  const ProgressOptions options{.terminal_columns = 108, .total_samples = 60'000};
  EXPECT_EQ(
      render_progress(options, 15'000, 5, values),
      "[====>               ]  25 % · 15,000/60,000 · 3,000 samples/s · loss 0.123 · 4 % communicating · 15 s left");
  EXPECT_EQ(render_progress({.terminal_columns = 88, .total_samples = 60'000}, 15'000, 5, {.loss = 0.1234}),
            "[====>               ]  25 % · 15,000/60,000 · 3,000 samples/s · loss 0.123 · 15 s left");
}

TEST(Progress, CountsCommunicationFromWhereTheBarBegan) {
  const ProgressOptions options{.terminal_columns = 120, .total_samples = 4, .communication_seconds = 10};
  EXPECT_THAT(render_progress(options, 1, 4, {.communication_seconds = 11}), HasSubstr(" · 25 % communicating · "));
  EXPECT_THAT(render_progress(options, 1, 4, {.communication_seconds = 9}), HasSubstr(" · 0 % communicating · "));
  EXPECT_THAT(render_progress(options, 1, 4, {.communication_seconds = 99}), HasSubstr(" · 100 % communicating · "));
}

TEST(Progress, LeavesOutTheLeastImportantFirst) {
  const auto at = [](int columns) {
    return render_progress({.terminal_columns = columns, .total_samples = 60'000}, 15'000, 5, values);
  };
  EXPECT_EQ(at(96), "[=>      ]  25 % · 15,000/60,000 · 3,000 samples/s · loss 0.123 · 4 % communicating · 15 s left");
  EXPECT_EQ(at(95), "[=====>                     ]  25 % · 15,000/60,000 · 3,000 samples/s · loss 0.123 · 15 s left");
  EXPECT_EQ(at(76), "[=>      ]  25 % · 15,000/60,000 · 3,000 samples/s · loss 0.123 · 15 s left");
  EXPECT_EQ(at(75), "[====>                  ]  25 % · 3,000 samples/s · loss 0.123 · 15 s left");
  EXPECT_EQ(at(60), "[=>      ]  25 % · 3,000 samples/s · loss 0.123 · 15 s left");
  EXPECT_EQ(at(59), "[=====>                   ]  25 % · loss 0.123 · 15 s left");
  EXPECT_EQ(at(42), "[=>      ]  25 % · loss 0.123 · 15 s left");
  EXPECT_EQ(at(41), "[====>               ]  25 % · 15 s left");
  EXPECT_EQ(at(29), "[=>      ]  25 % · 15 s left");
  EXPECT_EQ(at(28), "[===>               ]  25 %");
  EXPECT_EQ(at(17), "[=>      ]  25 %");
  EXPECT_EQ(at(16), " 25 %");
}

TEST(Progress, WritesLossesOfAnySize) {
  const auto of = [](double loss) {
    return render_progress({.terminal_columns = 120, .total_samples = 2}, 1, 1, {.loss = loss});
  };
  EXPECT_THAT(of(0), HasSubstr(" · loss 0.000 · "));
  EXPECT_THAT(of(-1234.5), HasSubstr(" · loss -1234.500 · "));
  EXPECT_THAT(of(0.000012), HasSubstr(" · loss 1.20e-05 · "));
  EXPECT_THAT(of(1e9), HasSubstr(" · loss 1.00e+09 · "));
  EXPECT_THAT(of(std::numeric_limits<double>::quiet_NaN()), HasSubstr(" · loss nan · "));
  EXPECT_THAT(of(std::numeric_limits<double>::infinity()), HasSubstr(" · loss inf · "));
}

TEST(Progress, WritesTimesOfAnyLength) {
  const auto left = [](double seconds) {
    return render_progress({.terminal_columns = 120, .total_samples = 2}, 1, seconds);
  };
  EXPECT_THAT(left(119), HasSubstr(" · 119 s left"));
  EXPECT_THAT(left(180), HasSubstr(" · 3 min left"));
  EXPECT_THAT(left(9000), HasSubstr(" · 2.5 h left"));
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

TEST(ProgressBar, ShowsWhatItWasToldLast) {
  testing::internal::CaptureStdout();
  {
    ProgressBar bar({.terminal_columns = 120, .total_samples = 10});
    bar.advance(5, {.loss = 2.5});
    bar.print_line("half");
  }
  const std::string output = testing::internal::GetCapturedStdout();
  EXPECT_THAT(output.substr(output.find("half")), HasSubstr(" · loss 2.500 · "));
}

TEST(ProgressBar, KeepsLinesAboveTheBarAndCleansUp) {
  testing::internal::CaptureStdout();
  {
    ProgressBar bar({.terminal_columns = 16, .total_samples = 10});
    bar.advance(5);
    bar.print_line("half");
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "\r 50 %\x1b[K\r\x1b[Khalf\n\r 50 %\x1b[K\r\x1b[K");
}

}  // namespace
}  // namespace fedrun
