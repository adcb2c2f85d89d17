#include <fedrun/data/synthetic_clients.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/error_text.h"

namespace fedrun::data {
namespace {

using testing::HasSubstr;

double mean_of_client(const FeatureSet& set, std::size_t client) {
  double sum = 0;
  for (const SampleIndex sample : set.clients.samples_of(client)) {
    for (std::size_t j = 0; j < set.features(); ++j) sum += set.values[sample * set.features() + j];
  }
  return sum / static_cast<double>(set.clients.size_of(client) * set.features());
}

double spread_of_means(const FeatureSet& set) {
  double sum = 0;
  double squares = 0;
  const auto clients = static_cast<double>(set.clients.clients());
  for (std::size_t client = 0; client < set.clients.clients(); ++client) {
    const double mean = mean_of_client(set, client);
    sum += mean;
    squares += mean * mean;
  }
  return std::sqrt(squares / clients - sum * sum / clients / clients);
}

TEST(SyntheticClients, HasWhatItAnnounces) {
  const FeatureSet set = make_synthetic_clients({.clients = 20, .seed = 1});
  EXPECT_EQ(set.name, "synthetic(1, 1)");
  EXPECT_EQ(set.clients.clients(), 20u);
  EXPECT_EQ(set.clients.samples(), set.count());
  EXPECT_EQ(set.values.size(), set.count() * set.features());
  EXPECT_LT(*std::max_element(set.labels.begin(), set.labels.end()), set.classes);
  for (std::size_t client = 0; client < 20; ++client) EXPECT_GE(set.clients.size_of(client), 50u);
}

TEST(SyntheticClients, BetaSetsTheInputsApart) {
  EXPECT_LT(spread_of_means(make_synthetic_clients({.beta = 0, .clients = 50})), 0.3);
  EXPECT_GT(spread_of_means(make_synthetic_clients({.beta = 2, .clients = 50})), 1.2);
}

TEST(SyntheticClients, AClientDoesNotDependOnTheOthers) {
  const FeatureSet few = make_synthetic_clients({.clients = 2, .seed = 3});
  const FeatureSet more = make_synthetic_clients({.clients = 4, .seed = 3});
  ASSERT_LE(few.count(), more.count());
  EXPECT_TRUE(std::equal(few.values.begin(), few.values.end(), more.values.begin()));
  EXPECT_TRUE(std::equal(few.labels.begin(), few.labels.end(), more.labels.begin()));
  EXPECT_NE(make_synthetic_clients({.clients = 2, .seed = 4}).values, few.values);
}

TEST(SyntheticClients, RefusesWhatCannotBe) {
  EXPECT_THAT(test::usage_error_of([] { make_synthetic_clients({.clients = 0}); }), HasSubstr("for 0 clients"));
  EXPECT_THAT(test::usage_error_of([] { make_synthetic_clients({.alpha = -1}); }), HasSubstr("synthetic(-1, 1)"));
}

}  // namespace
}  // namespace fedrun::data
