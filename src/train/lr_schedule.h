// Learning rates over time for large batches: linear scaling, warm-up, then a decay.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <variant>
#include <vector>

namespace fedrun {

// Lengths and times are counted from the first step, in epochs, which may be fractions; with one step per epoch, which
// is the default, they are steps. A factor is what a parameter group's own learning rate is multiplied by.

// Linear from `start` to 1.
struct Warmup {
  double length = 0;
  double start = 0;
};

struct ConstantRate {};

// Half a cosine from 1, where the warm-up ends, to `minimum` at `end`.
struct CosineDecay {
  double end = 0;
  double minimum = 0;
};

// (1 - t)^power, scaled to go from 1, where the warm-up ends, to `minimum` at `end`.
struct PolynomialDecay {
  double end = 0;
  double power = 2;
  double minimum = 0;
};

// Multiplied by `factor` at each multiple of `every`.
struct StepDecay {
  double every = 0;
  double factor = 0.1;
};

// Multiplied by `factor` at each of the times, which ascend.
struct MultiStepDecay {
  std::vector<double> times;
  double factor = 0.1;
};

using Decay = std::variant<ConstantRate, CosineDecay, PolynomialDecay, StepDecay, MultiStepDecay>;

struct LrScheduleOptions {
  // The linear scaling rule: with a batch on each rank, the number of ranks. Warm-up may then start at 1 / ranks.
  double scale = 1;
  Warmup warmup{};
  Decay decay = ConstantRate{};
  double steps_per_epoch = 1;
};

// The factor at a step, of which the first is 0. Throws UsageError for options that make no sense.
double lr_factor(const LrScheduleOptions& options, std::int64_t step);

// Where a schedule is; what a checkpoint keeps of it.
struct LrScheduleState {
  std::int64_t step = 0;
  std::vector<double> base_lrs;
};

// Sets the rates of an optimizer, which must outlive it; with a DistributedOptimizer, of its inner(). The rates that
// the parameter groups have at construction are their bases; the rates of the first step are set then. Call step()
// after each step of the optimizer.
class LrSchedule : public torch::optim::LRScheduler {
 public:
  LrSchedule(torch::optim::Optimizer& optimizer, const LrScheduleOptions& options);

  // The step whose rates are set.
  std::int64_t current_step() const { return static_cast<std::int64_t>(step_count_) - 1; }
  double current_factor() const { return lr_factor(options_, current_step()); }

  LrScheduleState state() const { return {current_step(), base_lrs_}; }
  // Goes on from there, with the bases from there; throws UsageError if they are not as many as the parameter groups.
  void load_state(const LrScheduleState& state);

 private:
  std::vector<double> get_lrs() override;

  LrScheduleOptions options_;
  std::vector<double> base_lrs_;
};

}  // namespace fedrun
