// Hierarchical rounds: by hand, and against plain FedAvg on however many ranks the run has.
#include <fedrun/collectives/engine_backend.h>
#include <fedrun/core/error.h>
#include <fedrun/fl/client_groups.h>
#include <fedrun/fl/federation.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/rank_test.h"
#include "support/scripted_clients.h"

namespace fedrun::fl {
namespace {

using test::ranks;
using test::ScriptedClients;
using test::ScriptedTrainer;
using test::TwoWeightsImpl;
using test::usage_error_of;
using test::world;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::size_t> sizes = {1, 2, 5, 4};

// Half of the way to the client's own number.
LocalResult move_halfway(TwoWeightsImpl& model, LocalTask& task) {
  model.weights[0] = (model.weights[0] + static_cast<float>(task.client * 10)) / 2;
  return {.steps = 1, .loss = 1};
}

struct Hierarchy {
  Hierarchy(Communicator& all, std::size_t count, const GroupTrainerOptions& options,
            const ScriptedTrainer::Script& script = move_halfway)
      : groups(all, {.count = std::min(all.size(), static_cast<int>(count))}),
        client_groups(clients, count, 0),
        trainer(script),
        group_trainer(trainer, client_groups, std::make_unique<FedAvg>(), options),
        federation(groups, group_trainer, client_groups, std::make_unique<FedAvg>(),
                   {.clients_per_round = count, .sums = options.members.sums}) {}

  RankGroups groups;
  ScriptedClients clients{sizes};
  ClientGroups client_groups;
  ScriptedTrainer trainer;
  GroupTrainer group_trainer;
  Federation federation;
};

GroupTrainerOptions everybody(std::uint64_t inner_rounds, SumOrder sums = SumOrder::fast) {
  return {.inner_rounds = inner_rounds, .members = {.clients_per_round = sizes.size(), .sums = sums}};
}

TEST(ClientGroups, DealClientsOutEvenly) {
  const ScriptedClients clients(std::vector<std::size_t>(10, 3));
  const ClientGroups groups(clients, 3, 5);
  std::vector<std::size_t> members(3);
  for (std::size_t client = 0; client < 10; ++client) ++members[groups.group_of(client)];
  EXPECT_THAT(members, ElementsAre(4, 3, 3));
  EXPECT_EQ(groups.train_samples(0), 12u);
  EXPECT_EQ(usage_error_of([&] { ClientGroups(clients, 11, 0); }),
            "10 clients cannot form 11 groups: choose a number from 1 to 10");
}

TEST(ClientGroups, AverageInsideFirst) {
  constexpr std::uint64_t inner_rounds = 3;
  Hierarchy run(world(), 2, everybody(inner_rounds));
  double expected = 0;
  for (std::size_t group = 0; group < 2; ++group) {
    double target = 0;
    double samples = 0;
    for (std::size_t client = 0; client < sizes.size(); ++client) {
      if (run.client_groups.group_of(client) != group) continue;
      target += static_cast<double>(sizes[client] * client * 10);
      samples += static_cast<double>(sizes[client]);
    }
    double weight = 1;
    for (std::uint64_t i = 0; i < inner_rounds; ++i) weight = (weight + target / samples) / 2;
    expected += samples * weight;
  }
  const RoundReport report = run.federation.run_round();
  EXPECT_NEAR(run.trainer.weights()[0], expected / 12, 1e-5);
  EXPECT_NEAR(report.samples, 12, 1e-5);
  EXPECT_NEAR(report.local_loss, 1, 1e-6);
}

TEST(ClientGroups, WithOneInnerRoundAreFedAvg) {
  Hierarchy run(world(), 3, everybody(1));
  run.federation.run_round();
  EXPECT_NEAR(run.trainer.weights()[0], (1 * 0.5 + 2 * 5.5 + 5 * 10.5 + 4 * 15.5) / 12, 1e-5);
}

TEST(ClientGroups, LearnTheSameOnAnyNumberOfRanks) {
  const auto learnt = [](Communicator& all, std::size_t count) {
    GroupTrainerOptions options = everybody(2, SumOrder::exact);
    options.members.clients_per_round = 3;
    Hierarchy run(all, count, options, [](TwoWeightsImpl& model, LocalTask& task) {
      model.weights += torch::rand(2) * static_cast<double>(task.client + 1);
      model.mean += torch::rand(1);
      return LocalResult{.steps = 1, .loss = torch::rand(1).item<double>()};
    });
    std::vector<double> numbers;
    for (int round = 0; round < 4; ++round) {
      numbers.push_back(run.federation.run_round().local_loss);
      for (const float weight : run.trainer.weights()) numbers.push_back(weight);
      numbers.push_back(run.trainer.two_weights().mean.item<double>());
    }
    return numbers;
  };
  Communicator alone(make_self_backend());
  // With one group of clients, all ranks form one group, which may have three of them: thirds add up to no whole.
  for (const std::size_t count : {1, 2}) EXPECT_EQ(learnt(world(), count), learnt(alone, count)) << count << " groups";
}

TEST(ClientGroups, AreLeftOutWhereAllClientsFail) {
  Hierarchy* hierarchy = nullptr;
  Hierarchy run(world(), 2, everybody(2), [&](TwoWeightsImpl& model, LocalTask& task) {
    if (hierarchy->client_groups.group_of(task.client) == 1) throw std::runtime_error("no power");
    return move_halfway(model, task);
  });
  hierarchy = &run;
  const RoundReport report = run.federation.run_round();
  ASSERT_EQ(report.dropped.size(), 1u);
  EXPECT_EQ(report.dropped[0].client, 1u);
  EXPECT_EQ(report.dropped[0].reason, Outcome::failed);
  EXPECT_NEAR(report.samples, static_cast<double>(run.client_groups.train_samples(0)), 1e-5);
}

TEST(ClientGroups, RefuseWhatRemembersClients) {
  const ScriptedClients clients(sizes);
  const ClientGroups groups(clients, 2, 0);
  ScriptedTrainer trainer(move_halfway);
  EXPECT_THAT(usage_error_of([&] {
                GroupTrainer(trainer, groups, std::make_unique<Scaffold>(ScaffoldOptions{.clients = 4, .local_lr = 1}),
                             {.inner_rounds = 2});
              }),
              HasSubstr("which scaffold needs"));
  EXPECT_THAT(usage_error_of([&] {
                GroupTrainer(trainer, groups, std::make_unique<FedAvg>(), {.members = {.buffers = BufferRule::local}});
              }),
              HasSubstr("--buffers local"));
  EXPECT_THAT(usage_error_of([&] { GroupTrainer(trainer, groups, std::make_unique<FedAvg>(), {.inner_rounds = 0}); }),
              HasSubstr("at least one round"));
}

}  // namespace
}  // namespace fedrun::fl
