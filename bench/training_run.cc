#include "training_run.h"

#include <fedrun/train/broadcast.h>
#include <fedrun/train/stopwatch.h>

#include <span>

#include "median.h"

namespace fedrun::bench {
namespace {

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

models::Model make_model(const TrainingSetting& setting) {
  models::Model model = models::make_model(setting.model);
  model->to(setting.device, setting.precision.type);
  return model;
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

std::int64_t usual_batch_size(const std::string& model) {
  if (model == "convnet") return 100;
  if (model == "mlp") return 32;
  return 16;
}

TrainingRun::TrainingRun(const TrainingSetting& setting, Communicator* group)
    : setting_(setting),
      group_(group),
      model_(make_model(setting)),
      input_(torch::randn(batch_shape(setting.batch_size, model_.sample_shape()))
                 .to(setting.device, setting.precision.type)),
      target_(torch::randint(model_.classes(), {setting.batch_size}).to(setting.device)),
      clock_(setting.device) {
  auto optimizer = make_optimizer(setting.optimizer, *model_);
  if (group == nullptr) {
    plain_ = std::move(optimizer);
    return;
  }
  broadcast_parameters(*group, *model_);
  distributed_ = std::make_unique<DistributedOptimizer>(
      *group, std::move(optimizer), model_->named_parameters(),
      DistributedOptimizerOptions{.compression = setting.compression, .sharded = setting.sharded});
}

StepTimes TrainingRun::step() {
  const double communication_at_start = communication_ms();
  clock_.mark();
  if (plain_) {
    plain_->zero_grad();
  } else {
    distributed_->zero_grad();
  }
  const torch::Tensor loss = torch::cross_entropy_loss(model_.forward(input_).to(torch::kFloat32), target_);
  clock_.mark();
  loss.backward();
  const double communication_in_backward = communication_ms() - communication_at_start;
  clock_.mark();
  if (distributed_) distributed_->synchronize();
  clock_.mark();
  if (plain_) {
    plain_->step();
  } else {
    distributed_->step();
  }
  clock_.mark();
  const double communication = communication_ms() - communication_at_start;
  const std::vector<double> laps = clock_.laps();
  // What the host's clock has seen of a GPU's communication is not when it happened.
  if (!setting_.device.is_cpu()) return {laps[0], laps[1], laps[2], laps[3]};
  return {.forward = laps[0],
          .backward = laps[1] - communication_in_backward,
          .communication = communication,
          .optimizer = laps[2] + laps[3] - (communication - communication_in_backward)};
}

double TrainingRun::reduce_all_buckets() {
  double seconds = 0;
  group_->barrier();
  {
    const Stopwatch watch(seconds);
    GradientReducer& reducer = distributed_->reducer();
    std::vector<std::unique_ptr<Work>> under_way;
    for (std::size_t i = 0; i < reducer.bucket_count(); ++i) {
      const GradientBucket& bucket = reducer.bucket(i);
      under_way.push_back(setting_.compression->reduce(*group_, bucket, {.name = bucket.name}));
    }
    for (const auto& work : under_way) work->wait();
  }
  group_->allreduce(std::span(&seconds, 1), {.op = ReduceOp::max});
  return 1e3 * seconds;
}

double TrainingRun::bare_communication_ms() {
  constexpr int repeats = 7;
  reduce_all_buckets();
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) times.push_back(reduce_all_buckets());
  return median(std::move(times));
}

}  // namespace fedrun::bench
