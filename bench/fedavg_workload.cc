#include "fedavg_workload.h"

#include <fedrun/core/error.h>
#include <fedrun/data/synthetic_digits.h>
#include <fmt/format.h>

#include <numeric>
#include <utility>

namespace fedrun::bench {
namespace {

// So many clients with the same ten samples, so that nothing but their number grows.
fedavg::Data share_samples(std::size_t clients) {
  const data::ImageSet digits = data::synthetic_digits({.count = 10});
  std::vector<data::SampleIndex> all(digits.count());
  std::iota(all.begin(), all.end(), data::SampleIndex{0});
  data::Partition partition;
  for (std::size_t client = 0; client < clients; ++client) partition.append(all);
  const fl::Samples samples = fl::samples_of(digits);
  return {.name = digits.name,
          .classes = static_cast<std::int64_t>(digits.classes),
          .partition = {},
          .clients = fl::TensorClients(samples, std::move(partition), samples)};
}

}  // namespace

std::vector<FedavgWorkload> workloads_named(std::string_view name) {
  FedavgWorkload lr{.model = "lr", .clients = 1000, .clients_per_round = 10, .lr = 0.03, .rounds_per_turn = 20};
  if (name == "lr-10" || name == "lr-100") {
    lr.name = name;
    if (name == "lr-100") lr.clients_per_round = 100;
    return {lr};
  }
  if (name == "cnn") {
    return {{.name = "cnn", .model = "cnn", .clients = 100, .clients_per_round = 10, .lr = 0.1, .rounds_per_turn = 1}};
  }
  if (name != "memory") throw UsageError(fmt::format("'{}' is not one of lr-10, lr-100, cnn, memory", name));
  std::vector<FedavgWorkload> growing;
  for (const std::size_t clients : {100, 1'000, 10'000, 100'000}) {
    lr.name = fmt::format("memory-{}", clients);
    lr.clients = clients;
    lr.shares_samples = true;
    growing.push_back(lr);
  }
  return growing;
}

fedavg::Data load_data(const FedavgWorkload& workload, const std::string& data_dir) {
  if (workload.shares_samples) return share_samples(workload.clients);
  fedavg::Flags flags;
  flags.dataset = data_dir.empty() ? "digits" : "mnist";
  flags.data_dir = data_dir;
  flags.partition_method = workload.model == "lr" ? "power-law" : "homo";
  flags.clients = workload.clients;
  return fedavg::load_data(flags);
}

models::Model make_model(const FedavgWorkload& workload, const fedavg::Data& data, torch::Device device) {
  torch::manual_seed(0);
  models::Model model =
      models::make_model(workload.model, {.classes = data.classes, .sample_shape = data.clients.sample_shape()});
  model->to(device);
  return model;
}

fl::ClassificationOptions training_options(const FedavgWorkload& workload) {
  return {.epochs = 1, .batch_size = 10, .optimizer = fl::ClientOptimizer::sgd, .lr = workload.lr};
}

}  // namespace fedrun::bench
