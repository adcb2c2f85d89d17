#include <fedrun/train/lars.h>
#include <fedrun/train/lr_schedule.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/error_text.h"

namespace fedrun {
namespace {

using test::usage_error_of;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(LrFactor, IsOneWithoutASchedule) {
  EXPECT_EQ(lr_factor({}, 0), 1);
  EXPECT_EQ(lr_factor({}, 1'000'000), 1);
}

TEST(LrFactor, WarmsUpLinearly) {
  const LrScheduleOptions options{.warmup = {.length = 4, .start = 0.5}};
  EXPECT_EQ(lr_factor(options, 0), 0.5);
  EXPECT_EQ(lr_factor(options, 1), 0.625);
  EXPECT_EQ(lr_factor(options, 3), 0.875);
  EXPECT_EQ(lr_factor(options, 4), 1);
  EXPECT_EQ(lr_factor(options, 5), 1);
  EXPECT_EQ(lr_factor({.warmup = {.length = 4}}, 0), 0);
}

TEST(LrFactor, CountsInFractionsOfEpochs) {
  const LrScheduleOptions options{.warmup = {.length = 0.5}, .steps_per_epoch = 8};
  EXPECT_EQ(lr_factor(options, 1), 0.25);
  EXPECT_EQ(lr_factor(options, 4), 1);
  const LrScheduleOptions drops{.decay = MultiStepDecay{.times = {30, 60, 60.5}, .factor = 0.5},
                                .steps_per_epoch = 391};
  EXPECT_EQ(lr_factor(drops, 30 * 391 - 1), 1);
  EXPECT_EQ(lr_factor(drops, 30 * 391), 0.5);
  EXPECT_EQ(lr_factor(drops, 60 * 391), 0.25);
  EXPECT_EQ(lr_factor(drops, 60 * 391 + 195), 0.25);
  EXPECT_EQ(lr_factor(drops, 60 * 391 + 196), 0.125);
}

TEST(LrFactor, FollowsHalfACosineToItsMinimum) {
  const LrScheduleOptions options{.warmup = {.length = 10}, .decay = CosineDecay{.end = 110, .minimum = 0.25}};
  EXPECT_EQ(lr_factor(options, 10), 1);
  EXPECT_DOUBLE_EQ(lr_factor(options, 35), 0.25 + 0.75 * (1 + std::sqrt(0.5)) / 2);
  EXPECT_DOUBLE_EQ(lr_factor(options, 60), 0.625);
  EXPECT_DOUBLE_EQ(lr_factor(options, 110), 0.25);
  EXPECT_DOUBLE_EQ(lr_factor(options, 1000), 0.25);
  EXPECT_DOUBLE_EQ(lr_factor({.decay = CosineDecay{.end = 3}}, 1), 0.75);
}

TEST(LrFactor, FollowsAPolynomial) {
  const LrScheduleOptions options{.warmup = {.length = 2}, .decay = PolynomialDecay{.end = 6}};
  EXPECT_EQ(lr_factor(options, 2), 1);
  EXPECT_EQ(lr_factor(options, 3), 0.5625);
  EXPECT_EQ(lr_factor(options, 6), 0);
  EXPECT_EQ(lr_factor(options, 7), 0);
  EXPECT_EQ(lr_factor({.decay = PolynomialDecay{.end = 4, .power = 1, .minimum = 0.5}}, 1), 0.875);
}

TEST(LrFactor, FallsInSteps) {
  const LrScheduleOptions options{.decay = StepDecay{.every = 3, .factor = 0.5}};
  EXPECT_EQ(lr_factor(options, 2), 1);
  EXPECT_EQ(lr_factor(options, 3), 0.5);
  EXPECT_EQ(lr_factor(options, 8), 0.25);
  EXPECT_EQ(lr_factor(options, 9), 0.125);
}

TEST(LrFactor, ScalesWithTheRanks) {
  const LrScheduleOptions options{
      .scale = 8, .warmup = {.length = 2, .start = 1.0 / 8}, .decay = StepDecay{.every = 4, .factor = 0.5}};
  EXPECT_EQ(lr_factor(options, 0), 1);
  EXPECT_EQ(lr_factor(options, 1), 4.5);
  EXPECT_EQ(lr_factor(options, 2), 8);
  EXPECT_EQ(lr_factor(options, 4), 4);
}

TEST(LrFactor, RefusesOptionsThatMakeNoSense) {
  const auto error_of = [](const LrScheduleOptions& options) { return usage_error_of([&] { lr_factor(options, 0); }); };
  EXPECT_EQ(error_of({.scale = 0}), "learning rate schedule: scale is 0: give more than 0");
  EXPECT_THAT(error_of({.scale = std::numeric_limits<double>::quiet_NaN()}), HasSubstr("scale is nan"));
  EXPECT_THAT(error_of({.warmup = {.length = -1}}), HasSubstr("warmup.length is -1"));
  EXPECT_THAT(error_of({.warmup = {.length = 1, .start = 2}}), HasSubstr("warmup.start is 2"));
  EXPECT_THAT(error_of({.steps_per_epoch = 0}), HasSubstr("steps_per_epoch is 0"));
  EXPECT_THAT(error_of({.warmup = {.length = 5}, .decay = CosineDecay{.end = 5}}),
              HasSubstr("a time after the warm-up"));
  EXPECT_THAT(error_of({.decay = CosineDecay{.end = 5, .minimum = 2}}), HasSubstr("minimum is 2"));
  EXPECT_THAT(error_of({.decay = PolynomialDecay{.end = 5, .power = 0}}), HasSubstr("power is 0"));
  EXPECT_THAT(error_of({.decay = StepDecay{}}), HasSubstr("every is 0"));
  EXPECT_THAT(error_of({.warmup = {.length = 5}, .decay = StepDecay{.every = 3}}), HasSubstr("every is 3"));
  EXPECT_THAT(error_of({.decay = MultiStepDecay{.times = {3, 2}}}), HasSubstr("times that ascend"));
  EXPECT_THAT(error_of({.decay = MultiStepDecay{.times = {3}, .factor = 10}}), HasSubstr("factor is 10"));
  EXPECT_THAT(usage_error_of([] { lr_factor({}, -1); }), HasSubstr("the step is -1"));
}

std::vector<double> rates_of(const torch::optim::Optimizer& optimizer) {
  std::vector<double> rates;
  for (const auto& group : optimizer.param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

template <typename Optimizer, typename Options>
Optimizer make_optimizer(const Options& first, const Options& second) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>{torch::ones({1}, torch::requires_grad())});
  groups.emplace_back(std::vector<torch::Tensor>{torch::ones({1}, torch::requires_grad())},
                      std::make_unique<Options>(second));
  return Optimizer(groups, first);
}

template <typename Optimizer, typename Options>
void expect_schedule() {
  auto optimizer = make_optimizer<Optimizer>(Options(0.5), Options(2));
  LrSchedule schedule(optimizer,
                      {.warmup = {.length = 2, .start = 0.5}, .decay = StepDecay{.every = 3, .factor = 0.5}});
  EXPECT_THAT(rates_of(optimizer), ElementsAre(0.25, 1));  // already at the first step
  schedule.step();
  EXPECT_THAT(rates_of(optimizer), ElementsAre(0.375, 1.5));
  schedule.step();
  EXPECT_THAT(rates_of(optimizer), ElementsAre(0.5, 2));
  schedule.step();
  EXPECT_THAT(rates_of(optimizer), ElementsAre(0.25, 1));
  EXPECT_EQ(schedule.current_step(), 3);
  EXPECT_EQ(schedule.current_factor(), 0.5);
}

TEST(LrSchedule, SetsTheRatesOfEveryGroupOfAnyOptimizer) {
  expect_schedule<torch::optim::SGD, torch::optim::SGDOptions>();
  expect_schedule<torch::optim::Adam, torch::optim::AdamOptions>();
  expect_schedule<torch::optim::AdamW, torch::optim::AdamWOptions>();
  expect_schedule<torch::optim::RMSprop, torch::optim::RMSpropOptions>();
  expect_schedule<Lars, LarsOptions>();
}

TEST(LrSchedule, GoesOnFromASavedState) {
  const LrScheduleOptions options{.warmup = {.length = 4}, .decay = CosineDecay{.end = 20}};
  auto optimizer = make_optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.5), torch::optim::SGDOptions(2));
  LrSchedule schedule(optimizer, options);
  for (int step = 0; step < 9; ++step) schedule.step();
  const LrScheduleState state = schedule.state();
  EXPECT_EQ(state.step, 9);
  EXPECT_THAT(state.base_lrs, ElementsAre(0.5, 2));

  // As after torch::load: the rates of the optimizer are those of step 9, not the bases.
  auto restored = make_optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.4), torch::optim::SGDOptions(1.6));
  LrSchedule resumed(restored, options);
  resumed.load_state(state);
  EXPECT_EQ(rates_of(restored), rates_of(optimizer));
  schedule.step();
  resumed.step();
  EXPECT_EQ(rates_of(restored), rates_of(optimizer));
  EXPECT_EQ(resumed.current_step(), 10);
}

TEST(LrSchedule, RefusesStatesAndOptionsThatDoNotFit) {
  auto optimizer = make_optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.5), torch::optim::SGDOptions(2));
  EXPECT_THAT(usage_error_of([&] { LrSchedule(optimizer, {.scale = -1}); }), HasSubstr("scale is -1"));
  LrSchedule schedule(optimizer, {});
  EXPECT_THAT(usage_error_of([&] {
                schedule.load_state({3, {0.5}});
              }),
              HasSubstr("the state has 1 parameter groups, the optimizer 2"));
  EXPECT_THAT(usage_error_of([&] { schedule.load_state({-1, {0.5, 2}}); }), HasSubstr("state.step is -1"));
  EXPECT_THAT(rates_of(optimizer), ElementsAre(0.5, 2));
}

}  // namespace
}  // namespace fedrun
