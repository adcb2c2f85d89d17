#include <fedrun/core/error.h>
#include <fedrun/train/lr_schedule.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>

namespace fedrun {
namespace {

void require(bool holds, std::string_view name, double value, std::string_view range) {
  if (!holds) throw UsageError(fmt::format("learning rate schedule: {} is {}: give {}", name, value, range));
}

// One for each kind of decay. Times become steps before they are compared, so that an epoch's first step belongs to it.
struct DecayCheck {
  double warmup_length;

  void operator()(const ConstantRate& /*constant*/) const {}
  void operator()(const CosineDecay& cosine) const { check_fall(cosine.end, cosine.minimum); }
  void operator()(const PolynomialDecay& polynomial) const {
    check_fall(polynomial.end, polynomial.minimum);
    require(polynomial.power > 0, "power", polynomial.power, "more than 0");
  }
  void operator()(const StepDecay& steps) const {
    require(steps.every > 0 && steps.every >= warmup_length, "every", steps.every,
            "more than 0, and not less than the warm-up");
    check_factor(steps.factor);
  }
  void operator()(const MultiStepDecay& steps) const {
    double last = std::max(warmup_length, 0.0);
    for (const double time : steps.times) {
      require(time >= last, "times", time, "times that ascend, none inside the warm-up");
      last = time;
    }
    check_factor(steps.factor);
  }

 private:
  void check_fall(double end, double minimum) const {
    require(end > warmup_length, "end", end, "a time after the warm-up");
    require(minimum >= 0 && minimum <= 1, "minimum", minimum, "a factor between 0 and 1");
  }
  static void check_factor(double factor) {
    require(factor > 0 && factor <= 1, "factor", factor, "more than 0, at most 1");
  }
};

void check(const LrScheduleOptions& options) {
  require(options.scale > 0, "scale", options.scale, "more than 0");
  require(options.steps_per_epoch > 0, "steps_per_epoch", options.steps_per_epoch, "more than 0");
  require(options.warmup.length >= 0, "warmup.length", options.warmup.length, "0 or more");
  require(options.warmup.start >= 0 && options.warmup.start <= 1, "warmup.start", options.warmup.start,
          "a factor between 0 and 1");
  std::visit(DecayCheck{options.warmup.length}, options.decay);
}

struct DecayFactor {
  double step;
  double warmup_steps;
  double steps_per_epoch;

  double operator()(const ConstantRate& /*constant*/) const { return 1; }
  double operator()(const CosineDecay& cosine) const {
    return cosine.minimum + (1 - cosine.minimum) * (1 + std::cos(std::numbers::pi * progress_to(cosine.end))) / 2;
  }
  double operator()(const PolynomialDecay& polynomial) const {
    return polynomial.minimum + (1 - polynomial.minimum) * std::pow(1 - progress_to(polynomial.end), polynomial.power);
  }
  double operator()(const StepDecay& steps) const {
    return std::pow(steps.factor, std::floor(step / (steps.every * steps_per_epoch)));
  }
  double operator()(const MultiStepDecay& steps) const {
    const auto passed = std::count_if(steps.times.begin(), steps.times.end(),
                                      [this](double time) { return time * steps_per_epoch <= step; });
    return std::pow(steps.factor, static_cast<double>(passed));
  }

 private:
  double progress_to(double end) const {
    return std::min(1.0, (step - warmup_steps) / (end * steps_per_epoch - warmup_steps));
  }
};

}  // namespace

double lr_factor(const LrScheduleOptions& options, std::int64_t step) {
  check(options);
  require(step >= 0, "the step", static_cast<double>(step), "0 or more");
  const auto now = static_cast<double>(step);
  const double warmup_steps = options.warmup.length * options.steps_per_epoch;
  if (now < warmup_steps) {
    return options.scale * (options.warmup.start + (1 - options.warmup.start) * now / warmup_steps);
  }
  return options.scale * std::visit(DecayFactor{now, warmup_steps, options.steps_per_epoch}, options.decay);
}

// Torch's scheduler counts how often the rates were set, which is once more than there were steps.
LrSchedule::LrSchedule(torch::optim::Optimizer& optimizer, const LrScheduleOptions& options)
    : LRScheduler(optimizer), options_(options), base_lrs_(get_current_lrs()) {
  step();
}

void LrSchedule::load_state(const LrScheduleState& state) {
  if (state.base_lrs.size() != base_lrs_.size()) {
    throw UsageError(
        fmt::format("learning rate schedule: the state has {} parameter groups, the optimizer {}: load it "
                    "into a schedule of the same optimizer",
                    state.base_lrs.size(), base_lrs_.size()));
  }
  require(state.step >= 0 && state.step < std::numeric_limits<unsigned>::max(), "state.step",
          static_cast<double>(state.step), "0 or more, and less than 2^32");
  base_lrs_ = state.base_lrs;
  step_count_ = static_cast<unsigned>(state.step);
  step();
}

std::vector<double> LrSchedule::get_lrs() {
  std::vector<double> lrs = base_lrs_;
  const double factor = lr_factor(options_, step_count_);
  for (double& lr : lrs) lr *= factor;
  return lrs;
}

}  // namespace fedrun
