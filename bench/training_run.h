// One model in training, whose steps are timed part by part.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/models/registry.h>
#include <fedrun/train/distributed_optimizer.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "step_clock.h"
#include "training_flags.h"

namespace fedrun::bench {

// Of one step, in milliseconds. Communication is what is exposed: the time in which nothing else happens on this rank.
struct StepTimes {
  double forward = 0;
  double backward = 0;
  double communication = 0;
  double optimizer = 0;

  double total() const { return forward + backward + communication + optimizer; }
};

// The median of each part.
StepTimes medians(const std::vector<StepTimes>& steps);

// How many samples are usual, where the user does not say.
std::int64_t usual_batch_size(const std::string& model);

struct TrainingSetting {
  std::string model{};
  std::int64_t batch_size = 0;
  Precision precision{};
  torch::Device device = torch::kCPU;
  std::string optimizer{};
  bool sharded = false;
  std::shared_ptr<Compression> compression{};  // shared: the optimizers of all models use it
};

class TrainingRun {
 public:
  // With a group, its ranks train together.
  TrainingRun(const TrainingSetting& setting, Communicator* group);

  StepTimes step();

  // Collective: what it takes to reduce the gradients of a step when nothing else happens, in milliseconds, on the
  // slowest rank. After steps, of a run with a group whose ranks have whole parameters each.
  double bare_communication_ms();

 private:
  double communication_ms() const { return distributed_ ? 1e3 * distributed_->communication_seconds() : 0; }
  double reduce_all_buckets();

  TrainingSetting setting_;
  Communicator* group_;
  models::Model model_;
  torch::Tensor input_;
  torch::Tensor target_;
  StepClock clock_;
  std::unique_ptr<torch::optim::Optimizer> plain_;  // one of these two
  std::unique_ptr<DistributedOptimizer> distributed_;
};

}  // namespace fedrun::bench
