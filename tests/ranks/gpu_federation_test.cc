// Federated averaging of models on GPUs must learn what one process learns on the CPU.
#include <fedrun/collectives/engine_backend.h>
#include <fedrun/data/synthetic_clients.h>
#include <fedrun/fl/classification_trainer.h>
#include <fedrun/fl/federation.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "support/torch_device.h"

namespace fedrun::fl {
namespace {

using test::rank;
using test::ranks;
using test::world;

// What a test varies.
struct Experiment {
  std::string_view algorithm = "fedavg";
  SumOrder sums = SumOrder::fast;
  RankGroupsOptions groups{};
  std::filesystem::path checkpoint{};  // to go on from and to save to
  std::uint64_t rounds = 3;
};

std::unique_ptr<Algorithm> make_algorithm(std::string_view name) {
  if (name == "fedadam") return std::make_unique<FedOpt>(ServerOptimizer::adam);
  if (name == "scaffold") return std::make_unique<Scaffold>(ScaffoldOptions{.clients = 6, .local_lr = 0.1});
  return std::make_unique<FedAvg>();
}

torch::Tensor weights_after(Communicator& all, torch::Device device, const Experiment& run) {
  static const data::FeatureSet set =
      data::make_synthetic_clients({.alpha = 0.5, .beta = 0.5, .clients = 6, .seed = 4});
  const TensorClients clients =
      TensorClients(samples_of(set), data::split_each_client(set.clients, 0.9)).with_few_samples(60);
  torch::manual_seed(7);
  models::Model model = models::make_model("lr", {.sample_shape = std::vector<std::int64_t>{60}});
  model->to(device);
  RankGroups groups(all, run.groups);
  ClassificationTrainer trainer(model, clients, {.epochs = 1, .batch_size = 20, .lr = 0.1});
  Federation federation(groups, trainer, clients, make_algorithm(run.algorithm),
                        {.clients_per_round = 4, .seed = 3, .sums = run.sums});
  if (!run.checkpoint.empty()) federation.resume(run.checkpoint);
  while (federation.round() < run.rounds) federation.run_round();
  if (!run.checkpoint.empty()) federation.save(run.checkpoint);
  EXPECT_EQ(federation.global_state().device(), device);
  EXPECT_GT(federation.evaluate().mean("train_accuracy"), 0.1);
  return federation.global_state().cpu();
}

torch::Tensor weights_of_one_cpu(Experiment run) {
  run.groups = {};
  Communicator alone(make_self_backend());
  return weights_after(alone, torch::kCPU, run);
}

void expect_close(const torch::Tensor& actual, const torch::Tensor& expected) {
  EXPECT_LT((actual - expected).abs().max().item<double>(), 1e-4);
}

TEST(GpuFederation, LearnsWhatOneCpuLearns) {
  for (const std::string_view algorithm : {"fedavg", "fedadam", "scaffold"}) {
    for (const SumOrder sums : {SumOrder::fast, SumOrder::exact}) {
      SCOPED_TRACE(algorithm);
      const Experiment run{.algorithm = algorithm, .sums = sums};
      expect_close(weights_after(world(), test::device(), run), weights_of_one_cpu(run));
    }
  }
}

TEST(GpuFederation, GroupsKeepTheirTrafficOnTheirGpus) {
  for (int count = 1; count < ranks(); ++count) {
    const Experiment run{.groups = {.count = count}};
    expect_close(weights_after(world(), test::device(), run), weights_of_one_cpu(run));
  }
}

TEST(GpuFederation, GoesOnFromACheckpoint) {
  const auto directory =
      std::filesystem::temp_directory_path() /
      ("fedrun_gpu_" + std::to_string(static_cast<int>(test::sum_over(world(), rank() == 0 ? getpid() : 0))));
  Experiment run{.algorithm = "fedadam", .sums = SumOrder::exact};
  const torch::Tensor expected = weights_after(world(), test::device(), run);
  run.checkpoint = directory;
  for (const std::uint64_t rounds : {1, 3}) {
    run.rounds = rounds;
    if (rounds == 3) {
      EXPECT_TRUE(torch::equal(weights_after(world(), test::device(), run), expected));
    } else {
      weights_after(world(), test::device(), run);
    }
  }
  world().barrier();
  if (rank() == 0) std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace fedrun::fl
