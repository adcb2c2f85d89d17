#include <fedrun/collectives/equal_parts.h>
#include <fedrun/core/error.h>
#include <fedrun/core/keyed_random.h>
#include <fedrun/fl/classification_trainer.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace fedrun::fl {
namespace {

constexpr std::size_t test_batch = 500;

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const torch::Tensor& weights,
                                                        const ClassificationOptions& options) {
  const std::vector<torch::Tensor> parameters = {weights};
  if (options.optimizer == ClientOptimizer::sgd) {
    return std::make_unique<torch::optim::SGD>(parameters,
                                               torch::optim::SGDOptions(options.lr).momentum(options.momentum));
  }
  return std::make_unique<torch::optim::Adam>(
      parameters, torch::optim::AdamOptions(options.lr).weight_decay(options.weight_decay).amsgrad(true));
}

// The client's samples in the order of one epoch; the same on every rank of the group.
Samples shuffled(const Samples& samples, KeyedRandom random) {
  torch::Tensor order = torch::arange(samples.targets.size(0));
  auto* values = order.data_ptr<std::int64_t>();
  for (auto remaining = static_cast<std::uint64_t>(order.numel()); remaining > 1; --remaining) {
    std::swap(values[remaining - 1], values[random.below(remaining)]);
  }
  return {samples.inputs.index_select(0, order), samples.targets.index_select(0, order)};
}

Samples rows(const Samples& samples, std::int64_t first, std::int64_t count) {
  return {samples.inputs.narrow(0, first, count), samples.targets.narrow(0, first, count)};
}

// This rank's rows of a batch.
Samples part_of(const Samples& batch, const Communicator& group) {
  if (group.size() == 1) return batch;
  const auto counts =
      equal_parts(static_cast<std::size_t>(batch.targets.size(0)), static_cast<std::size_t>(group.size()));
  const auto mine = counts.begin() + group.rank();
  return rows(batch, static_cast<std::int64_t>(std::accumulate(counts.begin(), mine, std::size_t{0})),
              static_cast<std::int64_t>(*mine));
}

}  // namespace

ClassificationTrainer::ClassificationTrainer(models::Model model, const TensorClients& clients,
                                             const ClassificationOptions& options)
    : model_(std::move(model)), clients_(clients), options_(options) {
  if (options.epochs < 1 || !(options.lr > 0)) {
    throw UsageError(
        fmt::format("{} epochs with a learning rate of {} train nothing: give 1 or more and a positive rate",
                    options.epochs, options.lr));
  }
}

LocalResult ClassificationTrainer::train(LocalTask& task) {
  const Samples samples = clients_.of_client(task.client);
  const std::int64_t count = samples.targets.size(0);
  const std::int64_t batch_size = options_.batch_size == 0 ? count : static_cast<std::int64_t>(options_.batch_size);
  const auto optimizer = make_optimizer(task.model.weights(), options_);
  model_->train();

  LocalResult result;
  double loss_sum = 0;
  std::int64_t samples_seen = 0;
  for (int epoch = 0; epoch < options_.epochs; ++epoch) {
    const Samples ordered = shuffled(samples, KeyedRandom(task.seed, 0, static_cast<std::uint64_t>(epoch)));
    for (std::int64_t first = 0; first < count; first += batch_size) {
      task.check_time();
      const Samples batch = part_of(rows(ordered, first, std::min(batch_size, count - first)), task.group);
      const std::int64_t batch_count = batch.targets.size(0);
      task.model.gradients().zero_();
      if (batch_count > 0) {
        const torch::Tensor loss = torch::cross_entropy_loss(model_.forward(batch.inputs), batch.targets);
        loss.backward();
        loss_sum += loss.item<double>() * static_cast<double>(batch_count);
        samples_seen += batch_count;
      }
      task.finish_gradients(static_cast<std::size_t>(batch_count));
      optimizer->step();
      ++result.steps;
    }
  }
  result.loss = samples_seen == 0 ? 0 : loss_sum / static_cast<double>(samples_seen);
  return result;
}

void ClassificationTrainer::test(const TestPart& part, Meter& metrics) {
  const torch::NoGradGuard no_grad;
  model_->eval();
  for (const char* name : {"train_loss", "train_accuracy", "test_loss", "test_accuracy"}) {
    metrics.add(name, 0, 0);  // so that all ranks have the same names
  }
  for (const Split split : {Split::train, Split::test}) {
    const std::size_t count = clients_.count(split);
    for (std::size_t first = part.index * test_batch; first < count; first += part.parts * test_batch) {
      measure(split, clients_.range(split, first, std::min(test_batch, count - first)), metrics);
    }
  }
}

void ClassificationTrainer::test_client(std::size_t client, Meter& metrics) {
  const torch::NoGradGuard no_grad;
  model_->eval();
  for (const Split split : {Split::train, Split::test}) {
    const Samples samples = clients_.of_client(client, split);
    const auto batch_size = static_cast<std::int64_t>(test_batch);
    for (std::int64_t first = 0; first < samples.targets.size(0); first += batch_size) {
      measure(split, rows(samples, first, std::min(batch_size, samples.targets.size(0) - first)), metrics);
    }
  }
}

void ClassificationTrainer::measure(Split split, const Samples& batch, Meter& metrics) {
  const std::string name = split == Split::train ? "train" : "test";
  const torch::Tensor output = model_.forward(batch.inputs);
  const auto samples = static_cast<double>(batch.targets.size(0));
  metrics.add(name + "_loss", torch::cross_entropy_loss(output, batch.targets).item<double>(), samples);
  metrics.add(name + "_accuracy", output.argmax(1).eq(batch.targets).sum().item<double>() / samples, samples);
}

}  // namespace fedrun::fl
