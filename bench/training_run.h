// One model in training, whose steps are timed part by part.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/models/registry.h>
#include <fedrun/train/distributed_optimizer.h>

#include <memory>
#include <string>
#include <vector>

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

class TrainingRun {
 public:
  // With a group, its ranks train together.
  TrainingRun(const std::string& model, const TrainingFlags& flags, Communicator* group);

  StepTimes step();
  std::int64_t batch_size() const { return batch_size_; }

 private:
  double communication_seconds() const { return distributed_ ? distributed_->communication_seconds() : 0; }

  models::Model model_;
  std::int64_t batch_size_;
  torch::Tensor input_;
  torch::Tensor target_;
  std::unique_ptr<torch::optim::Optimizer> plain_;  // one of these two
  std::unique_ptr<DistributedOptimizer> distributed_;
};

}  // namespace fedrun::bench
