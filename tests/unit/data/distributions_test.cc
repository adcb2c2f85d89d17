// Holds the moments of drawn numbers against those of their distributions; the seeds are fixed, so nothing flickers.
#include <fedrun/core/keyed_random.h>
#include <fedrun/data/distributions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "support/error_text.h"

namespace fedrun::data {
namespace {

using testing::ElementsAre;

struct Moments {
  double mean = 0;
  double variance = 0;
};

Moments moments_of(int draws, const std::function<double()>& draw) {
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double value = draw();
    sum += value;
    squares += value * value;
  }
  const double mean = sum / draws;
  return {mean, squares / draws - mean * mean};
}

constexpr int draws = 100'000;

TEST(KeyedRandom, UnitIsUniform) {
  KeyedRandom random(1, 0, 0);
  const auto [mean, variance] = moments_of(draws, [&] { return random.unit(); });
  EXPECT_NEAR(mean, 0.5, 0.004);
  EXPECT_NEAR(variance, 1.0 / 12, 0.001);
}

TEST(KeyedRandom, BelowReachesEveryNumberAndNoOther) {
  KeyedRandom random(1, 0, 0);
  std::vector<int> counts(7);
  for (int i = 0; i < 70'000; ++i) ++counts.at(random.below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 400);
  EXPECT_EQ(random.below(1), 0u);
}

TEST(Distributions, Normal) {
  KeyedRandom random(2, 0, 0);
  const auto [mean, variance] = moments_of(draws, [&] { return draw_normal(random); });
  EXPECT_NEAR(mean, 0, 0.013);
  EXPECT_NEAR(variance, 1, 0.02);
}

TEST(Distributions, GammaHasItsShapeAsMeanAndVariance) {
  for (const double shape : {0.1, 0.5, 1.0, 3.0, 20.0}) {
    KeyedRandom random(3, 0, 0);
    const auto [mean, variance] = moments_of(draws, [&] { return std::exp(draw_log_gamma(random, shape)); });
    EXPECT_NEAR(mean, shape, 0.02 * shape + 0.005) << shape;
    EXPECT_NEAR(variance, shape, 0.06 * shape + 0.01) << shape;
  }
  KeyedRandom random(3, 0, 0);
  EXPECT_EQ(test::usage_error_of([&] { draw_log_gamma(random, 0); }), "a gamma distribution cannot have the shape 0");
}

TEST(Distributions, DirichletHasItsMoments) {
  constexpr std::size_t count = 5;
  for (const double alpha : {0.1, 0.5, 10.0}) {
    KeyedRandom random(4, 0, 0);
    const auto [mean, variance] =
        moments_of(20'000, [&] { return shares_of(draw_log_dirichlet(random, count, alpha))[2]; });
    EXPECT_NEAR(mean, 0.2, 0.01) << alpha;
    EXPECT_NEAR(variance, 0.2 * 0.8 / (count * alpha + 1), 0.005) << alpha;
  }
}

TEST(Distributions, SharesSurviveWhatExpDoesNot) {
  KeyedRandom random(5, 0, 0);
  const std::vector<double> shares = shares_of(draw_log_dirichlet(random, 100, 1e-4));
  EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-12);
  const double nothing = -std::numeric_limits<double>::infinity();
  EXPECT_THAT(shares_of(std::vector{nothing, -2000.0, -2000.0}), ElementsAre(0, 0.5, 0.5));
}

}  // namespace
}  // namespace fedrun::data
