#include <fedrun/collectives/equal_parts.h>
#include <fedrun/core/error.h>
#include <fedrun/core/keyed_random.h>
#include <fedrun/fl/classification_trainer.h>
#include <fedrun/models/chain.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace fedrun::fl {
namespace {

constexpr std::size_t test_batch = 500;

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::vector<torch::Tensor>& parameters,
                                                        const ClassificationOptions& options) {
  if (options.optimizer == ClientOptimizer::sgd) {
    return std::make_unique<torch::optim::SGD>(parameters,
                                               torch::optim::SGDOptions(options.lr).momentum(options.momentum));
  }
  return std::make_unique<torch::optim::Adam>(
      parameters, torch::optim::AdamOptions(options.lr).weight_decay(options.weight_decay).amsgrad(true));
}

// Nothing where the model is anything but Linear with a bias, perhaps between Flatten and Sigmoid, all of it trained;
// or where it does not fit to the samples, which it will say itself.
std::optional<LinearClassifier> find_linear_classifier(const models::Model& model,
                                                       const std::vector<std::int64_t>& sample_shape) {
  auto* chain = dynamic_cast<models::ChainImpl*>(&*model);
  if (chain == nullptr) return std::nullopt;
  std::vector<std::shared_ptr<torch::nn::Module>> layers = chain->children();
  if (!layers.empty() && layers.front()->as<torch::nn::FlattenImpl>() != nullptr) {
    layers.erase(layers.begin());
  } else if (sample_shape.size() != 1) {
    return std::nullopt;
  }
  const bool has_sigmoid = layers.size() == 2 && layers.back()->as<torch::nn::SigmoidImpl>() != nullptr;
  if (layers.size() != (has_sigmoid ? 2 : 1)) return std::nullopt;
  const auto* linear = layers.front()->as<torch::nn::LinearImpl>();
  if (linear == nullptr || !linear->bias.defined()) return std::nullopt;
  if (!linear->weight.requires_grad() || !linear->bias.requires_grad()) return std::nullopt;
  if (!linear->weight.device().is_cpu()) return std::nullopt;
  if (linear->options.in_features() != c10::multiply_integers(sample_shape)) return std::nullopt;
  return LinearClassifier(static_cast<std::size_t>(linear->options.in_features()),
                          static_cast<std::size_t>(linear->options.out_features()),
                          has_sigmoid ? LinearOutput::sigmoid : LinearOutput::scores);
}

Samples rows(const Samples& samples, std::int64_t first, std::int64_t count) {
  return {samples.inputs.narrow(0, first, count), samples.targets.narrow(0, first, count)};
}

using Indices = std::span<const data::SampleIndex>;

// Those that there are of `count` samples.
Indices some_of(Indices order, std::size_t first, std::size_t count) {
  first = std::min(first, order.size());
  return order.subspan(first, std::min(count, order.size() - first));
}

// What this rank has of a batch.
Indices part_of(Indices batch, const Communicator& group) {
  if (group.size() == 1) return batch;
  const auto counts = equal_parts(batch.size(), static_cast<std::size_t>(group.size()));
  const auto mine = counts.begin() + group.rank();
  return batch.subspan(std::accumulate(counts.begin(), mine, std::size_t{0}), *mine);
}

}  // namespace

ClassificationTrainer::ClassificationTrainer(models::Model model, const TensorClients& clients,
                                             const ClassificationOptions& options)
    : model_(std::move(model)),
      linear_(find_linear_classifier(model_, clients.sample_shape())),
      clients_(clients),
      options_(options) {
  if (options.epochs < 1 || !(options.lr > 0)) {
    throw UsageError(
        fmt::format("{} epochs with a learning rate of {} train nothing: give 1 or more and a positive rate",
                    options.epochs, options.lr));
  }
  if (!(options.momentum >= 0 && options.momentum < 1) || !(options.weight_decay >= 0)) {
    throw UsageError(fmt::format(
        "a momentum of {} with a weight decay of {}: give a momentum from 0 to below 1, and a decay that is "
        "not negative",
        options.momentum, options.weight_decay));
  }
}

LocalResult ClassificationTrainer::train(LocalTask& task) {
  const std::size_t count = clients_.train_samples(task.client);
  const std::size_t batch_size = options_.batch_size == 0 ? count : options_.batch_size;
  FlatModel& flat = task.model;
  // If nobody else wants to see the gradients, autograd's stay where it puts them, which saves clearing and adding; and
  // those of a linear model need not even be written down.
  const bool is_private = task.group.size() == 1 && !task.correct_gradients;
  const bool uses_flat = !is_private || linear_;
  const bool steps_at_once =
      is_private && linear_ && options_.optimizer == ClientOptimizer::sgd && options_.momentum == 0;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (!steps_at_once) {
    optimizer = make_optimizer(uses_flat ? std::vector{flat.weights()} : model_->parameters(), options_);
  }
  model_->train();

  LocalResult result;
  double loss_sum = 0;
  std::size_t samples_seen = 0;
  for (int epoch = 0; epoch < options_.epochs; ++epoch) {
    // The same order on every rank of the group.
    const auto order = clients_.shuffled(task.client, {task.seed, 0, static_cast<std::uint64_t>(epoch)});
    for (std::size_t first = 0; first < count; first += batch_size) {
      task.check_time();
      const Indices samples = part_of(some_of(order, first, batch_size), task.group);
      // A linear model is faster than memory.
      if (linear_) clients_.prefetch(some_of(order, first + batch_size, batch_size));
      double loss = 0;
      if (steps_at_once) {
        loss = add_linear_gradient(samples, flat, -options_.lr, flat.weights());
      } else {
        if (uses_flat) {
          flat.gradients().zero_();
        } else {
          flat.release_gradients();
        }
        if (!samples.empty()) {
          loss = linear_ ? add_linear_gradient(samples, flat, 1, flat.gradients()) : backward(samples);
        }
        if (uses_flat) task.finish_gradients(samples.size());
        optimizer->step();
      }
      loss_sum += loss * static_cast<double>(samples.size());
      samples_seen += samples.size();
      ++result.steps;
    }
  }
  result.loss = samples_seen == 0 ? 0 : loss_sum / static_cast<double>(samples_seen);
  result.loss_samples = static_cast<double>(samples_seen);
  return result;
}

double ClassificationTrainer::backward(Indices samples) {
  const Samples batch = on_device(clients_.gather(samples));
  const torch::Tensor loss = torch::cross_entropy_loss(model_.forward(batch.inputs), batch.targets);
  loss.backward();
  return loss.item<double>();
}

double ClassificationTrainer::add_linear_gradient(Indices samples, const FlatModel& model, double rate,
                                                  const torch::Tensor& sum) {
  if (!batch_.inputs.defined() || static_cast<std::size_t>(batch_.targets.size(0)) < samples.size()) {
    batch_ = clients_.make_batch(samples.size());
  }
  clients_.gather(samples, batch_);
  return linear_->add_gradient(
      model.weights().const_data_ptr<float>(),
      {.values = batch_.inputs.const_data_ptr<float>(), .rows = samples.size(), .columns = linear_->features()},
      batch_.targets.const_data_ptr<std::int64_t>(), static_cast<float>(rate), sum.data_ptr<float>());
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

Samples ClassificationTrainer::on_device(const Samples& samples) const {
  const torch::Device device = model_->parameters().front().device();
  return {samples.inputs.to(device), samples.targets.to(device)};
}

void ClassificationTrainer::measure(Split split, const Samples& samples_to_test, Meter& metrics) {
  const std::string name = split == Split::train ? "train" : "test";
  const Samples batch = on_device(samples_to_test);
  const torch::Tensor output = model_.forward(batch.inputs);
  const auto samples = static_cast<double>(batch.targets.size(0));
  metrics.add(name + "_loss", torch::cross_entropy_loss(output, batch.targets).item<double>(), samples);
  metrics.add(name + "_accuracy", output.argmax(1).eq(batch.targets).sum().item<double>() / samples, samples);
}

}  // namespace fedrun::fl
