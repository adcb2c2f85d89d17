#include <fedrun/core/error.h>
#include <fedrun/train/meter.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/error_text.h"
#include "support/rank_test.h"

namespace fedrun {
namespace {

using test::is_last_rank;
using test::mismatch_error_of;
using test::rank;
using test::ranks;
using test::sum_over;
using test::world;
using testing::ElementsAre;

TEST(MeterOverRanks, CountsEverySampleOnce) {
  // Rank r has r + 1 samples of value r.
  Meter meter;
  meter.add("loss", rank(), rank() + 1);
  meter.add("one", 1);
  const Meter all = meter.over_ranks(world());
  double samples = 0;
  double sum = 0;
  for (int other = 0; other < ranks(); ++other) {
    samples += other + 1;
    sum += other * (other + 1);
  }
  EXPECT_EQ(all.samples("loss"), samples);
  EXPECT_EQ(all.mean("loss"), sum / samples);
  EXPECT_EQ(all.mean("one"), 1);
  EXPECT_EQ(all.samples("one"), ranks());
  EXPECT_EQ(meter.samples("loss"), rank() + 1) << "the meter itself stays";
}

TEST(MeterOverRanks, IgnoresRanksWithoutSamples) {
  // The first rank that has samples need not be rank 0, and a rank without data has never heard of the names.
  Meter meter;
  if (is_last_rank()) {
    meter.add("loss", 2, 3);
    meter.add("accuracy", 0.5, 3);
  }
  const Meter all = meter.over_ranks(world());
  EXPECT_THAT(all.names(), ElementsAre("accuracy", "loss"));
  EXPECT_EQ(all.mean("loss"), 2);
  EXPECT_EQ(all.samples("accuracy"), 3);

  EXPECT_TRUE(Meter().over_ranks(world()).names().empty());

  meter.reset();
  meter.add("loss", std::numeric_limits<double>::quiet_NaN(), 0);
  meter.add("accuracy", 1, 0);
  const Meter none = meter.over_ranks(world());
  EXPECT_TRUE(std::isnan(none.mean("loss")));
  EXPECT_EQ(none.samples("loss"), 0);
}

TEST(MeterOverRanks, ShowsThroughValuesThatAreNotFinite) {
  Meter meter;
  meter.add("loss", rank() == 0 ? std::numeric_limits<double>::quiet_NaN() : 4.0, 2);
  const Meter all = meter.over_ranks(world());
  EXPECT_EQ(all.samples_not_finite("loss"), 2);
  EXPECT_EQ(all.samples("loss"), 2 * (ranks() - 1));
  if (ranks() > 1) {
    EXPECT_EQ(all.mean("loss"), 4);
  } else {
    EXPECT_TRUE(std::isnan(all.mean("loss")));
  }
}

TEST(MeterOverRanks, TheOrderOfNamesDoesNotMatter) {
  Meter meter;
  meter.add(rank() == 0 ? "a" : "b", rank() == 0 ? 1 : 2);
  meter.add(rank() == 0 ? "b" : "a", rank() == 0 ? 2 : 1);
  const Meter all = meter.over_ranks(world());
  EXPECT_EQ(all.mean("a"), 1);
  EXPECT_EQ(all.mean("b"), 2);
}

TEST(MeterOverRanks, NamesThatDifferAreAnErrorOnEveryRank) {
  if (ranks() == 1) GTEST_SKIP() << "one rank cannot disagree";
  Meter meter;
  meter.add("loss", 1);
  if (is_last_rank()) meter.add("norm", 1);
  const std::string last = std::to_string(ranks() - 1);
  EXPECT_EQ(mismatch_error_of([&] { meter.over_ranks(world()); }),
            "Meter: the names differ between ranks: rank 0 has 'loss', rank " + last +
                " has 'loss', 'norm'. Add to the same names on every rank, with 0 samples where there are none.");
  EXPECT_EQ(sum_over(world(), 1), ranks());
}

TEST(MeterOverRanks, WorksInGroups) {
  Communicator half = world().split({.color = rank() % 2});
  Meter meter;
  meter.add("color", rank() % 2);
  EXPECT_EQ(meter.over_ranks(half).mean("color"), rank() % 2);
  EXPECT_EQ(meter.over_ranks(half).samples("color"), half.size());
}

}  // namespace
}  // namespace fedrun
