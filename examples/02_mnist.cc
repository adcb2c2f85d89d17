// Trains the ConvNet on MNIST, or on drawn digits, data-parallel on any number of ranks.
#include <fedrun/core/flags.h>
#include <fedrun/core/parse.h>
#include <fedrun/fedrun.h>
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "digits.h"

namespace {

using namespace digits;

struct Flags {
  int epochs;
  size_t batch_size;
  double lr;
  double momentum;
  std::shared_ptr<fedrun::Compression> compression;
  uint64_t seed;
  std::string data_dir;
  std::string json;
};

std::optional<Flags> read_flags(int argc, char** argv, int rank) {
  cxxopts::Options options("mnist", "Trains the MNIST ConvNet on every rank that fedrun starts.");
  // clang-format off
  options.add_options()
    ("epochs", "passes over the training set", cxxopts::value<int>()->default_value("15"))
    ("batch-size", "images per rank and step", cxxopts::value<size_t>()->default_value("100"))
    ("lr", "learning rate of one rank; multiplied by their number, as the batch is", cxxopts::value<double>()->default_value("0.001"))
    ("momentum", "momentum of SGD", cxxopts::value<double>()->default_value("0.9"))
    ("compression", "none, fp16, bf16, fp16-feedback or bf16-feedback: what gradients travel as between hosts", cxxopts::value<std::string>()->default_value("none"))
    ("seed", "of weights and shuffling; the same on every rank", cxxopts::value<uint64_t>()->default_value("1"))
    ("data-dir", "directory with the MNIST files; without it, synthetic digits", cxxopts::value<std::string>()->default_value(""))
    ("json", "also write results to this file, one JSON object per line", cxxopts::value<std::string>()->default_value(""));
  // clang-format on
  const auto parsed = fedrun::parse_flags(options, argc, argv, rank);
  if (!parsed) return std::nullopt;
  using fedrun::Compression;
  const auto compression = fedrun::parse_word<std::shared_ptr<Compression>>(
      (*parsed)["compression"].as<std::string>(), {{"none", Compression::none},
                                                   {"fp16", Compression::fp16},
                                                   {"bf16", Compression::bf16},
                                                   {"fp16-feedback", Compression::fp16_with_feedback()},
                                                   {"bf16-feedback", Compression::bf16_with_feedback()}});
  const Flags flags{(*parsed)["epochs"].as<int>(),
                    (*parsed)["batch-size"].as<size_t>(),
                    (*parsed)["lr"].as<double>(),
                    (*parsed)["momentum"].as<double>(),
                    compression,
                    (*parsed)["seed"].as<uint64_t>(),
                    (*parsed)["data-dir"].as<std::string>(),
                    (*parsed)["json"].as<std::string>()};
  if (flags.epochs < 1 || flags.batch_size < 1)
    throw fedrun::UsageError("--epochs and --batch-size must be at least 1");
  return flags;
}

class JsonLines {
 public:
  explicit JsonLines(const std::string& path) : enabled_(!path.empty()) {
    if (enabled_) file_.open(path);
    if (enabled_ && !file_)
      throw fedrun::UsageError("cannot write --json file '" + path + "': does its directory exist?");
  }
  void write(const nlohmann::json& line) {
    if (enabled_) file_ << line.dump() << std::endl;
  }

 private:
  bool enabled_;
  std::ofstream file_;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  fedrun::Session session;
  auto& world = session.world();
  const bool is_first = world.rank() == 0;
  const std::optional<Flags> read = read_flags(argc, argv, world.rank());
  if (!read) return 0;
  const Flags& flags = *read;
  const Sets sets = load_sets(flags.data_dir);
  JsonLines json(is_first ? flags.json : "");

  torch::manual_seed(flags.seed);
  fedrun::models::ConvNet model;
  model->to(session.device());
  fedrun::broadcast_parameters(world, *model, {.root = 0});
  // With n ranks a step sees n times as many images, so there are n times fewer steps: each goes n times as far.
  const auto sgd = torch::optim::SGDOptions(flags.lr * world.size()).momentum(flags.momentum);
  fedrun::DistributedOptimizer optimizer(world, std::make_unique<torch::optim::SGD>(model->parameters(), sgd),
                                         model->named_parameters(), {.compression = flags.compression});

  fedrun::DistributedSampler sampler(sets.train.count(), world.rank(), world.size(), {.seed = flags.seed});
  auto loader = torch::data::make_data_loader(normalised(sets.train), sampler, flags.batch_size);
  const size_t steps = (sampler.size() + flags.batch_size - 1) / flags.batch_size;
  if (is_first) {
    fmt::print("{} ranks × {} threads, {}: {} training and {} test images, batch {} and lr {} per rank\n", world.size(),
               session.threads(), sets.train.name, sets.train.count(), sets.test.count(), flags.batch_size, flags.lr);
  }

  for (int epoch = 1; epoch <= flags.epochs; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    fedrun::ProgressBar bar({.terminal_columns = is_first ? session.env().terminal_columns : 0,
                             .total_samples = sampler.size() * static_cast<size_t>(world.size()),
                             .communication_seconds = optimizer.communication_seconds()});
    fedrun::Meter meter;
    size_t step = 0;
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      const auto target = batch.target.to(session.device());
      const auto output = model->forward(batch.data.to(session.device()));
      const auto loss = torch::cross_entropy_loss(output, target);
      loss.backward();   // reduces as it goes
      optimizer.step();  // waits, then steps
      add_batch(meter, output, target, loss.item<double>());
      bar.advance(static_cast<size_t>(batch.data.size(0) * world.size()),
                  {.loss = meter.mean("loss"), .communication_seconds = optimizer.communication_seconds()});
      if (++step % 50 != 0 && step != steps) continue;
      const fedrun::Meter all = meter.over_ranks(world);
      const double mean_loss = all.mean("loss");
      const double accuracy = all.mean("accuracy");
      meter.reset();
      if (!is_first) continue;
      bar.print_line(fmt::format("Epoch [{}/{}], Step [{}/{}], Loss: {:.4f}, Accuracy: {:.2f}", epoch, flags.epochs,
                                 step, steps, mean_loss, accuracy));
      json.write({{"event", "step"}, {"epoch", epoch}, {"step", step}, {"loss", mean_loss}, {"accuracy", accuracy}});
    }
    const double seconds = seconds_since(start);
    const double samples_per_second = static_cast<double>(sets.train.count()) / seconds;
    if (is_first)
      bar.print_line(fmt::format("Epoch [{}/{}] took {:.1f} s, {:.0f} samples/s", epoch, flags.epochs, seconds,
                                 samples_per_second));
    json.write(
        {{"event", "epoch"}, {"epoch", epoch}, {"seconds", seconds}, {"samples_per_second", samples_per_second}});
  }

  average_running_statistics(world, *model);
  const fedrun::Meter test = evaluate(session, model, sets.test);
  if (is_first) {
    fmt::print("Test accuracy on {} images of {}: {:.2f} %\n", test.samples("accuracy"), sets.test.name,
               100 * test.mean("accuracy"));
  }
  json.write({{"event", "test"},
              {"accuracy", test.mean("accuracy")},
              {"loss", test.mean("loss")},
              {"images", test.samples("accuracy")},
              {"data", sets.test.name},
              {"synthetic", sets.test.synthetic}});
}
