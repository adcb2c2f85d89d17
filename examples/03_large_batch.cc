// Trains the ConvNet with batches so large that plain SGD needs help: LARS with warm-up and a cosine, or Adasum.
#include <fedrun/core/flags.h>
#include <fedrun/core/parse.h>
#include <fedrun/fedrun.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "digits.h"

namespace {

using namespace digits;

enum class Method { lars, adasum, sgd };

struct Flags {
  Method method;
  int epochs;
  size_t batch_size;
  std::optional<double> lr;
  std::string data_dir;
};

std::optional<Flags> read_flags(int argc, char** argv, int rank) {
  cxxopts::Options options("large_batch", "Trains the ConvNet with large batches on every rank that fedrun starts.");
  // clang-format off
  options.add_options()
    ("method", "lars (layer-wise rates), adasum (adds up what agrees with no other rank) or sgd, for comparison", cxxopts::value<std::string>()->default_value("lars"))
    ("epochs", "passes over the training set", cxxopts::value<int>()->default_value("5"))
    ("batch-size", "images per rank and step", cxxopts::value<size_t>()->default_value("1000"))
    ("lr", "learning rate; default 10 for lars, 0.05 for adasum and sgd", cxxopts::value<double>())
    ("data-dir", "directory with the MNIST files; without it, synthetic digits", cxxopts::value<std::string>()->default_value(""));
  // clang-format on
  const auto parsed = fedrun::parse_flags(options, argc, argv, rank);
  if (!parsed) return std::nullopt;
  const Flags flags{
      fedrun::parse_word<Method>((*parsed)["method"].as<std::string>(),
                                 {{"lars", Method::lars}, {"adasum", Method::adasum}, {"sgd", Method::sgd}}),
      (*parsed)["epochs"].as<int>(), (*parsed)["batch-size"].as<size_t>(),
      parsed->count("lr") != 0 ? std::optional((*parsed)["lr"].as<double>()) : std::nullopt,
      (*parsed)["data-dir"].as<std::string>()};
  if (flags.epochs < 1 || flags.batch_size < 1)
    throw fedrun::UsageError("--epochs and --batch-size must be at least 1");
  return flags;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Flags& flags, const torch::nn::Module& model) {
  if (flags.method == Method::lars) {
    return std::make_unique<fedrun::Lars>(model.parameters(),
                                          fedrun::LarsOptions(flags.lr.value_or(10)).weight_decay(1e-4));
  }
  return std::make_unique<torch::optim::SGD>(model.parameters(),
                                             torch::optim::SGDOptions(flags.lr.value_or(0.05)).momentum(0.9));
}

}  // namespace

int main(int argc, char** argv) {
  fedrun::Session session;
  auto& world = session.world();
  const std::optional<Flags> flags = read_flags(argc, argv, world.rank());
  if (!flags) return 0;
  const Sets sets = load_sets(flags->data_dir);

  torch::manual_seed(1);
  fedrun::models::ConvNet model;
  model->to(session.device());
  fedrun::broadcast_parameters(world, *model);
  const auto op = flags->method == Method::adasum ? fedrun::ReduceOp::adasum : fedrun::ReduceOp::average;
  fedrun::DistributedOptimizer optimizer(world, make_optimizer(*flags, *model), model->named_parameters(), {.op = op});

  fedrun::DistributedSampler sampler(sets.train.count(), world.rank(), world.size());
  auto loader = torch::data::make_data_loader(normalised(sets.train), sampler, flags->batch_size);
  const double steps_per_epoch =
      std::ceil(static_cast<double>(sampler.size()) / static_cast<double>(flags->batch_size));
  // A model that knows nothing yet cannot take the full rate: an epoch to get there, or less, and then ever slower.
  const auto epochs = static_cast<double>(flags->epochs);
  fedrun::LrSchedule schedule(optimizer.inner(), {.warmup = {.length = std::min(1.0, epochs / 3)},
                                                  .decay = fedrun::CosineDecay{.end = epochs},
                                                  .steps_per_epoch = steps_per_epoch});
  for (int epoch = 1; epoch <= flags->epochs; ++epoch) {
    fedrun::Meter meter;
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      const auto target = batch.target.to(session.device());
      const auto output = model->forward(batch.data.to(session.device()));
      const auto loss = torch::cross_entropy_loss(output, target);
      loss.backward();
      optimizer.step();
      schedule.step();
      add_batch(meter, output, target, loss.item<double>());
    }
    const fedrun::Meter all = meter.over_ranks(world);
    if (world.rank() == 0) {
      fmt::print("Epoch [{}/{}], Loss: {:.4f}, Accuracy: {:.2f}\n", epoch, flags->epochs, all.mean("loss"),
                 all.mean("accuracy"));
    }
  }
  average_running_statistics(world, *model);
  const fedrun::Meter test = evaluate(session, model, sets.test);
  if (world.rank() == 0) {
    fmt::print("Test accuracy on {} images of {}: {:.2f} %\n", test.samples("accuracy"), sets.test.name,
               100 * test.mean("accuracy"));
  }
}
