#include "training_run.h"

#include <fedrun/train/broadcast.h>

#include <chrono>

#include "median.h"

namespace fedrun::bench {
namespace {

double milliseconds_now() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::int64_t usual_batch_size(const std::string& model) {
  if (model == "convnet") return 100;
  if (model == "mlp") return 32;
  return 16;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name, const torch::nn::Module& model) {
  if (name == "adam") return std::make_unique<torch::optim::Adam>(model.parameters());
  if (name == "adamw") return std::make_unique<torch::optim::AdamW>(model.parameters());
  return std::make_unique<torch::optim::SGD>(model.parameters(), torch::optim::SGDOptions(0.001).momentum(0.9));
}

std::vector<std::int64_t> batch_shape(std::int64_t batch_size, const std::vector<std::int64_t>& sample_shape) {
  std::vector<std::int64_t> shape = {batch_size};
  shape.insert(shape.end(), sample_shape.begin(), sample_shape.end());
  return shape;
}

}  // namespace

StepTimes medians(const std::vector<StepTimes>& steps) {
  const auto of = [&](double StepTimes::*part) {
    std::vector<double> values;
    for (const StepTimes& step : steps) values.push_back(step.*part);
    return median(std::move(values));
  };
  return {of(&StepTimes::forward), of(&StepTimes::backward), of(&StepTimes::communication), of(&StepTimes::optimizer)};
}

TrainingRun::TrainingRun(const std::string& model, const TrainingFlags& flags, Communicator* group)
    : model_(models::make_model(model)),
      batch_size_(flags.batch_size.value_or(usual_batch_size(model))),
      input_(torch::randn(batch_shape(batch_size_, model_.sample_shape()))),
      target_(torch::randint(model_.classes(), {batch_size_})) {
  auto optimizer = make_optimizer(flags.optimizer, *model_);
  if (group == nullptr) {
    plain_ = std::move(optimizer);
    return;
  }
  broadcast_parameters(*group, *model_);
  distributed_ = std::make_unique<DistributedOptimizer>(
      *group, std::move(optimizer), model_->named_parameters(),
      DistributedOptimizerOptions{.compression = flags.compression, .sharded = flags.sharded});
}

StepTimes TrainingRun::step() {
  const double start = milliseconds_now();
  const double communication_at_start = communication_seconds();
  if (plain_) {
    plain_->zero_grad();
  } else {
    distributed_->zero_grad();
  }
  const torch::Tensor loss = torch::cross_entropy_loss(model_.forward(input_), target_);
  const double after_forward = milliseconds_now();
  loss.backward();
  const double after_backward = milliseconds_now();
  const double communication_in_backward = 1e3 * (communication_seconds() - communication_at_start);
  if (plain_) {
    plain_->step();
  } else {
    distributed_->step();
  }
  const double end = milliseconds_now();
  const double communication = 1e3 * (communication_seconds() - communication_at_start);
  return {.forward = after_forward - start,
          .backward = after_backward - after_forward - communication_in_backward,
          .communication = communication,
          .optimizer = end - after_backward - (communication - communication_in_backward)};
}

}  // namespace fedrun::bench
