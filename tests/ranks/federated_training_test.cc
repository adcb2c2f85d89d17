// Real training: federated averaging against what it must equal, on however many ranks the run has.
#include <fedrun/collectives/engine_backend.h>
#include <fedrun/data/partitioners.h>
#include <fedrun/data/synthetic_clients.h>
#include <fedrun/fl/classification_trainer.h>
#include <fedrun/fl/federation.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "support/error_text.h"
#include "support/rank_test.h"

namespace fedrun::fl {
namespace {

using test::mismatch_error_of;
using test::ranks;
using test::usage_error_of;
using test::world;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t features = 60;

// 12 clients of very different sizes.
TensorClients make_clients() {
  static const data::FeatureSet set =
      data::make_synthetic_clients({.alpha = 0.5, .beta = 0.5, .clients = 12, .seed = 4});
  return TensorClients(samples_of(set), data::split_each_client(set.clients, 0.9));
}

models::Model make_lr() {
  torch::manual_seed(7);
  return models::make_model("lr", {.sample_shape = std::vector<std::int64_t>{features}});
}

std::unique_ptr<Algorithm> make_algorithm(std::string_view name) {
  if (name == "fedprox") return std::make_unique<FedProx>(0.1);
  if (name == "fedadam") return std::make_unique<FedOpt>(ServerOptimizer::adam);
  if (name == "scaffold") return std::make_unique<Scaffold>(ScaffoldOptions{.clients = 12, .local_lr = 0.1});
  return std::make_unique<FedAvg>();
}

struct Training {
  ClassificationOptions classification{.epochs = 2, .batch_size = 20, .lr = 0.1};
  FederationOptions federation{.clients_per_round = 5, .seed = 3};
  std::string_view algorithm = "fedavg";
  int rounds = 3;
};

torch::Tensor weights_after(Communicator& all, const RankGroupsOptions& grouping, const Training& training) {
  const TensorClients clients = make_clients();
  RankGroups groups(all, grouping);
  ClassificationTrainer trainer(make_lr(), clients, training.classification);
  Federation federation(groups, trainer, clients, make_algorithm(training.algorithm), training.federation);
  for (int round = 0; round < training.rounds; ++round) federation.run_round();
  return federation.global_state().clone();
}

torch::Tensor weights_of_one_rank(const Training& training) {
  Communicator alone(make_self_backend());
  return weights_after(alone, {}, training);
}

double distance(const torch::Tensor& a, const torch::Tensor& b) { return (a - b).abs().max().item<double>(); }

TEST(FederatedTraining, OneFullBatchOfEverybodyIsCentralisedSgd) {
  Training training{.classification = {.epochs = 1, .batch_size = 0, .lr = 0.5},
                    .federation = {.clients_per_round = 12},
                    .rounds = 1};
  const torch::Tensor federated = weights_after(world(), {}, training);

  const TensorClients clients = make_clients();
  models::Model model = make_lr();
  torch::optim::SGD optimizer(model->parameters(), 0.5);
  const Samples all = clients.range(Split::train, 0, clients.count(Split::train));
  torch::cross_entropy_loss(model.forward(all.inputs), all.targets).backward();
  optimizer.step();
  std::vector<torch::Tensor> parts;
  for (const torch::Tensor& parameter : model->parameters()) parts.push_back(parameter.detach().flatten());
  EXPECT_LT(distance(federated, torch::cat(parts)), 1e-6);
}

TEST(FederatedTraining, ManyRanksLearnWhatOneLearns) {
  for (const std::string_view algorithm : {"fedavg", "fedprox", "scaffold"}) {
    Training training{.algorithm = algorithm};
    const torch::Tensor alone = weights_of_one_rank(training);
    EXPECT_LT(distance(weights_after(world(), {}, training), alone), 1e-5) << algorithm;
    training.federation.sums = SumOrder::exact;
    EXPECT_TRUE(torch::equal(weights_after(world(), {}, training), weights_of_one_rank(training)))
        << algorithm << ": exact sums must not depend on the number of ranks";
  }
}

TEST(FederatedTraining, AGroupLearnsWhatOneRankLearns) {
  const torch::Tensor alone = weights_of_one_rank({});
  for (int count = 1; count < ranks(); ++count) {
    EXPECT_LT(distance(weights_after(world(), {.count = count}, {}), alone), 1e-4) << count << " groups";
  }
}

// With batches of one sample, only the first rank of a group ever has one.
TEST(FederatedTraining, AGroupReportsTheLossOfOneRank) {
  for (const std::size_t batch_size : {20, 1}) {
    const auto local_loss = [&](Communicator& all, const RankGroupsOptions& grouping) {
      const TensorClients clients = make_clients().with_few_samples(30);
      RankGroups groups(all, grouping);
      ClassificationTrainer trainer(make_lr(), clients, {.batch_size = batch_size, .lr = 0.1});
      Federation federation(groups, trainer, clients, std::make_unique<FedAvg>(), {.clients_per_round = 5});
      return federation.run_round().local_loss;
    };
    Communicator alone(make_self_backend());
    const double expected = local_loss(alone, {});
    EXPECT_GT(expected, 0.1);
    for (int count = 1; count <= ranks(); ++count) {
      SCOPED_TRACE(std::to_string(count) + " groups, batches of " + std::to_string(batch_size));
      const double loss = local_loss(world(), {.count = count});
      EXPECT_NEAR(loss, expected, 1e-4);
      for (const auto& other : world().allgather(std::span(&loss, 1))) EXPECT_EQ(other.front(), loss);
    }
  }
}

TEST(FederatedTraining, ReplicasAreEqualToTheBit) {
  const torch::Tensor weights = weights_after(world(), {}, {});
  const auto all = world().allgather(
      std::span<const float>(weights.const_data_ptr<float>(), static_cast<std::size_t>(weights.numel())));
  for (const auto& other : all) EXPECT_EQ(other, all.front());
}

TEST(FederatedTraining, SeedsMatter) {
  Training training;
  const torch::Tensor first = weights_after(world(), {}, training);
  EXPECT_TRUE(torch::equal(weights_after(world(), {}, training), first));
  training.federation.seed = 4;
  EXPECT_FALSE(torch::equal(weights_after(world(), {}, training), first));
}

// The same on every rank.
std::filesystem::path shared_directory() {
  const auto process = static_cast<int>(test::sum_over(world(), test::rank() == 0 ? getpid() : 0));
  return std::filesystem::temp_directory_path() / ("fedrun_checkpoint_" + std::to_string(process));
}

void remove_shared(const std::filesystem::path& directory) {
  world().barrier();
  if (test::rank() == 0) std::filesystem::remove_all(directory);
  world().barrier();
}

// Saves on all ranks and goes on alone, and the other way round.
TEST(FederatedTraining, GoesOnFromACheckpointToTheSameBits) {
  const std::filesystem::path directory = shared_directory();
  Communicator alone(make_self_backend());
  for (const std::string_view algorithm : {"fedavg", "fedadam", "scaffold"}) {
    SCOPED_TRACE(algorithm);
    Training training{.algorithm = algorithm, .rounds = 6};
    training.federation.sums = SumOrder::exact;
    const torch::Tensor expected = weights_of_one_rank(training);
    const auto run = [&](Communicator& all, std::uint64_t until) {
      const TensorClients clients = make_clients();
      RankGroups groups(all);
      ClassificationTrainer trainer(make_lr(), clients, training.classification);
      Federation federation(groups, trainer, clients, make_algorithm(algorithm), training.federation);
      federation.resume(directory);
      while (federation.round() < until) federation.run_round();
      federation.save(directory);
      return federation.global_state().clone();
    };
    run(world(), 2);
    if (test::rank() == 0) run(alone, 4);
    world().barrier();
    EXPECT_TRUE(torch::equal(run(world(), 6), expected));
    remove_shared(directory);
  }
}

// A federation that may go on from a checkpoint of another one.
struct Resumed {
  explicit Resumed(Communicator& all, const FederationOptions& options = {}, TensorClients data = make_clients())
      : clients(std::move(data)),
        groups(all),
        trainer(make_lr(), clients, {.lr = 0.1}),
        federation(groups, trainer, clients, std::make_unique<FedAvg>(), options) {}

  TensorClients clients;
  RankGroups groups;
  ClassificationTrainer trainer;
  Federation federation;
};

TEST(FederatedTraining, RefusesTheCheckpointOfAnotherRun) {
  const std::filesystem::path directory = shared_directory();
  Resumed(world(), {.seed = 3}).federation.save(directory);
  EXPECT_TRUE(Resumed(world(), {.seed = 3}).federation.resume(directory));
  const auto error_of = [&](Resumed&& run) { return usage_error_of([&] { run.federation.resume(directory); }); };
  EXPECT_THAT(error_of(Resumed(world(), {.seed = 4})),
              AllOf(HasSubstr("is of a run with seeds 3 and 0, not with seeds 4 and 0"), HasSubstr("--resume")));
  EXPECT_THAT(error_of(Resumed(world(), {.sampling = {.seed = 5}, .seed = 3})), HasSubstr("not with seeds 3 and 5"));
  EXPECT_THAT(error_of(Resumed(world(), {.seed = 3}, make_clients().with_few_samples(4))),
              HasSubstr("is of a run with 12 clients whose sizes have the hash"));
  remove_shared(directory);
  EXPECT_FALSE(Resumed(world(), {.seed = 3}).federation.resume(directory));
}

TEST(FederatedTraining, NoticesACheckpointThatOnlyOneRankSees) {
  if (ranks() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const std::filesystem::path directory = shared_directory();
  Communicator alone(make_self_backend());
  if (test::rank() == 0) Resumed(alone).federation.save(directory);
  Resumed run(world());
  EXPECT_THAT(
      mismatch_error_of([&] { run.federation.resume(test::rank() == 0 ? directory : directory / "of another host"); }),
      AllOf(HasSubstr("round 0, weights with hash"), HasSubstr("none"), HasSubstr("--run-dir")));
  remove_shared(directory);
}

TEST(FederatedTraining, RemovesCheckpoints) {
  const std::filesystem::path directory = shared_directory();
  Resumed run(world());
  run.federation.save(directory);
  world().barrier();
  if (test::rank() == 0) remove_checkpoint(directory);
  world().barrier();
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  EXPECT_FALSE(run.federation.resume(directory));
  remove_shared(directory);
}

TEST(FederatedTraining, LearnsToClassify) {
  const TensorClients clients = make_clients();
  RankGroups groups(world());
  ClassificationTrainer trainer(make_lr(), clients, {.epochs = 5, .batch_size = 10, .lr = 0.1});
  Federation federation(groups, trainer, clients, std::make_unique<FedAvg>(), {.clients_per_round = 12});
  const Meter before = federation.evaluate();
  EXPECT_EQ(before.samples("train_accuracy"), static_cast<double>(clients.count(Split::train)));
  EXPECT_EQ(before.samples("test_accuracy"), static_cast<double>(clients.count(Split::test)));
  for (int round = 0; round < 10; ++round) federation.run_round();
  const Meter after = federation.evaluate();
  EXPECT_GT(after.mean("test_accuracy"), before.mean("test_accuracy") + 0.2);
  EXPECT_LT(after.mean("train_loss"), before.mean("train_loss"));
}

TEST(FederatedTraining, TestsSingleClients) {
  const TensorClients clients = make_clients();
  RankGroups groups(world(), {.count = (ranks() + 1) / 2});
  ClassificationTrainer trainer(make_lr(), clients, {.epochs = 2, .lr = 0.1});
  Federation federation(groups, trainer, clients, std::make_unique<FedAvg>(), {.clients_per_round = 12});
  federation.run_round();
  const Meter together = federation.evaluate();
  const ResultAggregator results = federation.evaluate_clients();
  EXPECT_EQ(results.clients("train_accuracy").size(), 12u);
  for (const char* metric : {"train_accuracy", "test_accuracy", "train_loss", "test_loss"}) {
    EXPECT_NEAR(results.mean(metric), together.mean(metric), 1e-5) << metric;
  }
  EXPECT_LT(results.ranked("test_accuracy").front().value, results.ranked("test_accuracy").back().value);
}

TEST(FederatedTraining, AdamAndDropoutDoNotDependOnRanksEither) {
  const auto train = [](Communicator& all) {
    torch::manual_seed(1);
    const Samples images{torch::rand({40, 1, 28, 28}), torch::randint(10, {40})};
    const TensorClients clients(images, data::partition_evenly(40, 4, 1), images);
    RankGroups groups(all);
    ClassificationTrainer trainer(
        models::make_model("cnn_dropout"), clients,
        {.batch_size = 5, .optimizer = ClientOptimizer::adam, .lr = 1e-3, .weight_decay = 1e-4});
    Federation federation(groups, trainer, clients, std::make_unique<FedAvg>(),
                          {.clients_per_round = 4, .sums = SumOrder::exact});
    federation.run_round();
    return federation.global_state().clone();
  };
  Communicator alone(make_self_backend());
  EXPECT_TRUE(torch::equal(train(world()), train(alone)));
}

}  // namespace
}  // namespace fedrun::fl
