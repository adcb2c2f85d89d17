#include <fedrun/core/error.h>
#include <fedrun/train/meter.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/error_text.h"

namespace fedrun {
namespace {

using test::usage_error_of;
using testing::ElementsAre;

TEST(Meter, WeighsValuesBySamples) {
  Meter meter;
  meter.add("loss", 1, 3);
  meter.add("loss", 5, 1);
  meter.add("accuracy", 0.5);
  EXPECT_EQ(meter.mean("loss"), 2);
  EXPECT_EQ(meter.samples("loss"), 4);
  EXPECT_EQ(meter.mean("accuracy"), 0.5);
  EXPECT_EQ(meter.samples("accuracy"), 1);
  EXPECT_THAT(meter.names(), ElementsAre("accuracy", "loss"));
}

TEST(Meter, CountsValuesThatAreNotFiniteApart) {
  Meter meter;
  meter.add("loss", 2, 10);
  meter.add("loss", std::numeric_limits<double>::quiet_NaN(), 3);
  meter.add("loss", -std::numeric_limits<double>::infinity(), 4);
  EXPECT_EQ(meter.mean("loss"), 2);
  EXPECT_EQ(meter.samples("loss"), 10);
  EXPECT_EQ(meter.samples_not_finite("loss"), 7);
}

TEST(Meter, HasNoMeanWithoutSamples) {
  Meter meter;
  meter.add("loss", 7, 0);
  EXPECT_TRUE(std::isnan(meter.mean("loss")));
  EXPECT_EQ(meter.samples("loss"), 0);
}

TEST(Meter, StartsAgainWithTheSameNames) {
  Meter meter;
  meter.add("loss", 7);
  meter.add("loss", std::numeric_limits<double>::quiet_NaN());
  meter.reset();
  EXPECT_THAT(meter.names(), ElementsAre("loss"));
  EXPECT_TRUE(std::isnan(meter.mean("loss")));
  EXPECT_EQ(meter.samples_not_finite("loss"), 0);
  meter.add("loss", 3);
  EXPECT_EQ(meter.mean("loss"), 3);
}

TEST(Meter, SaysWhatIsWrong) {
  Meter meter;
  meter.add("loss", 1);
  meter.add("accuracy", 1);
  EXPECT_EQ(usage_error_of([&] { meter.mean("los"); }),
            "Meter: nothing was added to 'los', only to 'accuracy', 'loss'");
  EXPECT_EQ(usage_error_of([&] { Meter().samples("loss"); }), "Meter: nothing was added to 'loss'");
  EXPECT_EQ(usage_error_of([&] { meter.add("loss", 1, -1); }),
            "Meter: 'loss' cannot have -1 samples: give a finite number that is not negative");
  EXPECT_THROW(meter.add("loss", 1, std::numeric_limits<double>::infinity()), UsageError);
}

}  // namespace
}  // namespace fedrun
