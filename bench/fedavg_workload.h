// What fedavg_bench measures: the tasks on which federated systems are usually compared.
#pragma once

#include <fedrun/fl/classification_trainer.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../examples/fedavg_data.h"

namespace fedrun::bench {

struct FedavgWorkload {
  std::string name{};
  std::string model{};
  std::size_t clients = 0;
  std::size_t clients_per_round = 0;
  double lr = 0;
  int rounds_per_turn = 0;      // by default
  bool shares_samples = false;  // all clients have the same few, drawn: to see what a client costs
};

// lr-10, lr-100 and cnn by their names; memory is four of them, with more and more clients. Throws UsageError.
std::vector<FedavgWorkload> workloads_named(std::string_view name);

// MNIST, where there is a directory with its files, else digits that the program draws.
fedavg::Data load_data(const FedavgWorkload& workload, const std::string& data_dir);

// The same weights on every rank and in every system.
models::Model make_model(const FedavgWorkload& workload, const fedavg::Data& data, torch::Device device);

fl::ClassificationOptions training_options(const FedavgWorkload& workload);

}  // namespace fedrun::bench
