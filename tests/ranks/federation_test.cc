// Rounds with scripted clients, whose outcome is computed by hand; also with clients that fail.
#include <fedrun/collectives/engine_backend.h>
#include <fedrun/core/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "support/error_text.h"
#include "support/rank_test.h"
#include "support/scripted_clients.h"

namespace fedrun::fl {
namespace {

using test::mismatch_error_of;
using test::rank;
using test::ranks;
using test::ScriptedClients;
using test::ScriptedTrainer;
using test::sum_over;
using test::TwoWeightsImpl;
using test::usage_error_of;
using test::world;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Clients of 1, 2 and 5 samples that add these to the first weight: together (1·8 − 2·4 + 5·1.6) / 8 = 1.
const std::vector<std::size_t> sizes = {1, 2, 5};
const std::vector<double> deltas = {8, -4, 1.6};

LocalResult learn(TwoWeightsImpl& model, LocalTask& task) {
  model.weights[0] += deltas[task.client];
  model.mean += static_cast<double>(task.client);
  model.counter += 5;
  return {.steps = 1, .loss = static_cast<double>(task.client)};
}

struct ThreeClients {
  explicit ThreeClients(const ScriptedTrainer::Script& script, FederationOptions options = {},
                        std::unique_ptr<Algorithm> algorithm = std::make_unique<FedAvg>())
      : trainer(script), federation(groups, trainer, clients, std::move(algorithm), with_clients(options)) {}

  static FederationOptions with_clients(FederationOptions options) {
    options.clients_per_round = sizes.size();
    return options;
  }

  RankGroups groups{world()};
  ScriptedClients clients{sizes};
  ScriptedTrainer trainer;
  Federation federation;
};

TEST(Federation, AveragesByTheNumberOfSamples) {
  for (const SumOrder sums : {SumOrder::fast, SumOrder::exact}) {
    ThreeClients run(learn, {.sums = sums});
    const RoundReport report = run.federation.run_round();
    EXPECT_EQ(report.round, 0u);
    EXPECT_THAT(report.clients, ElementsAre(0, 1, 2));
    EXPECT_THAT(report.dropped, IsEmpty());
    EXPECT_NEAR(report.local_loss, (0 * 1 + 1 * 2 + 2 * 5) / 8.0, 1e-6);
    EXPECT_NEAR(run.trainer.weights()[0], 2, 1e-6);
    EXPECT_EQ(run.trainer.weights()[1], 1);
    run.federation.run_round();
    EXPECT_NEAR(run.trainer.weights()[0], 3, 1e-6);
    EXPECT_EQ(run.federation.round(), 2u);
  }
}

TEST(Federation, AveragesBuffersButNoCounters) {
  ThreeClients run(learn);
  run.federation.run_round();
  EXPECT_NEAR(run.trainer.two_weights().mean.item<double>(), 1.5, 1e-6);
  ThreeClients skipping(learn, {.buffers = BufferRule::skip});
  skipping.federation.run_round();
  EXPECT_EQ(skipping.trainer.two_weights().mean.item<double>(), 0);
  EXPECT_NEAR(skipping.trainer.weights()[0], 2, 1e-6);
}

// Otherwise models that are saved, and layers that look at them, would show which clients have trained on which rank.
TEST(Federation, CountersBeginAnewWithEveryClient) {
  ThreeClients run([](TwoWeightsImpl& model, LocalTask& task) {
    EXPECT_EQ(model.counter.item<std::int64_t>(), 0) << "client " << task.client;
    return learn(model, task);
  });
  for (int round = 0; round < 2; ++round) run.federation.run_round();
  EXPECT_EQ(run.trainer.two_weights().counter.item<std::int64_t>(), 0);
}

TEST(Federation, LeavesClientsOutThatThrow) {
  ThreeClients run([](TwoWeightsImpl& model, LocalTask& task) {
    learn(model, task);
    if (task.client == 1) throw std::runtime_error("no power");
    return LocalResult{.steps = 1};
  });
  const RoundReport report = run.federation.run_round();
  ASSERT_EQ(report.dropped.size(), 1u);
  EXPECT_EQ(report.dropped[0].client, 1u);
  EXPECT_EQ(report.dropped[0].reason, Outcome::failed);
  EXPECT_NEAR(run.trainer.weights()[0], 1 + (1 * 8 + 5 * 1.6) / 6, 1e-6);
}

TEST(Federation, LeavesClientsOutThatDiverge) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    ThreeClients run([bad](TwoWeightsImpl& model, LocalTask& task) {
      learn(model, task);
      if (task.client == 2) model.weights[1] = bad;
      return LocalResult{.steps = 1};
    });
    const RoundReport report = run.federation.run_round();
    ASSERT_EQ(report.dropped.size(), 1u);
    EXPECT_EQ(report.dropped[0].reason, Outcome::diverged);
    EXPECT_NEAR(run.trainer.weights()[0], 1 + (1 * 8 - 2 * 4) / 3.0, 1e-6);
    EXPECT_EQ(run.trainer.weights()[1], 1);
  }
}

TEST(Federation, LeavesClientsOutThatAreLate) {
  ThreeClients run(
      [](TwoWeightsImpl& model, LocalTask& task) {
        if (task.client == 0) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1100));
          task.check_time();
          ADD_FAILURE() << "check_time() has let a late client pass";
        }
        return learn(model, task);
      },
      {.client_timeout = std::chrono::milliseconds(1000)});
  const RoundReport report = run.federation.run_round();
  ASSERT_EQ(report.dropped.size(), 1u);
  EXPECT_EQ(report.dropped[0].client, 0u);
  EXPECT_EQ(report.dropped[0].reason, Outcome::late);
  EXPECT_NEAR(run.trainer.weights()[0], 1 + (-2 * 4 + 5 * 1.6) / 7, 1e-6);
}

TEST(Federation, EndsWhereTooFewFinish) {
  ThreeClients run(
      [](TwoWeightsImpl& model, LocalTask& task) {
        if (task.client != 1) throw std::runtime_error("no power");
        return learn(model, task);
      },
      {.min_clients = 2});
  EXPECT_THAT(usage_error_of([&] { run.federation.run_round(); }),
              AllOf(HasSubstr("round 0: 1 of 3 clients finished, where 2 are needed (client 0 failed)"),
                    HasSubstr("--min-clients")));
  EXPECT_EQ(sum_over(world(), 1), ranks()) << "on every rank alike, so the run can go on";
}

TEST(Federation, RepeatsARoundInWhichTooFewFinish) {
  RankGroups groups(world());
  ScriptedClients clients(std::vector<std::size_t>(100, 1));
  const std::vector<std::size_t> first_choice = ClientSampler(100, 3).clients_of_round(0);
  ScriptedTrainer trainer([&](TwoWeightsImpl& model, LocalTask& task) {
    if (testing::Matches(testing::Contains(task.client))(first_choice)) throw std::runtime_error("no power");
    model.weights += 1;
    return LocalResult{.steps = 1};
  });
  Federation federation(groups, trainer, clients,
                        std::make_unique<Scaffold>(ScaffoldOptions{.clients = 100, .local_lr = 1}),
                        {.clients_per_round = 3, .round_attempts = 2});
  const RoundReport report = federation.run_round();
  EXPECT_EQ(report.round, 0u);
  EXPECT_EQ(report.attempt, 1);
  EXPECT_NE(report.clients, first_choice);
  EXPECT_GT(report.finished(), 0u);
  EXPECT_THAT(trainer.weights(), ElementsAre(2, 2));
  EXPECT_EQ(federation.run_round().attempt, 0) << "round 1 has other clients from the start";
}

TEST(Federation, SaysWherePoissonSamplingChoosesTooFew) {
  const ClientSamplerOptions poisson{.method = ClientSampling::poisson};
  RankGroups groups(world());
  ScriptedClients clients(std::vector<std::size_t>(100, 1));
  ScriptedTrainer trainer([](TwoWeightsImpl&, LocalTask&) { return LocalResult{.steps = 1}; });
  Federation federation(groups, trainer, clients, std::make_unique<FedAvg>(),
                        {.clients_per_round = 3, .sampling = poisson, .min_clients = 3});
  const ClientSampler sampler(100, 3, poisson);
  const auto chosen = [&] { return sampler.clients_of_round(federation.round()).size(); };
  while (chosen() == 0 || chosen() >= 3) federation.run_round();
  EXPECT_THAT(usage_error_of([&] { federation.run_round(); }),
              AllOf(HasSubstr("only " + std::to_string(chosen()) + " clients were chosen, where 3 are needed"),
                    HasSubstr("--client-num-per-round")));
}

TEST(Federation, KeepsBuffersWithTheirClients) {
  std::vector<float> means;
  ThreeClients run(
      [&](TwoWeightsImpl& model, LocalTask& task) {
        means.push_back(model.mean.item<float>() - static_cast<float>(10 * task.client * task.round));
        model.mean += static_cast<double>(10 * task.client);
        return LocalResult{.steps = 1};
      },
      {.buffers = BufferRule::local});
  for (int round = 0; round < 3; ++round) run.federation.run_round();
  EXPECT_THAT(means, Each(0));
  EXPECT_EQ(run.trainer.two_weights().mean.item<float>(), 0) << "the global model has none of theirs";
}

TEST(Federation, TakesBuffersBackWithTheRound) {
  std::vector<float> means;
  bool has_failed = false;  // client 2 always trains on the same rank
  ThreeClients run(
      [&](TwoWeightsImpl& model, LocalTask& task) {
        means.push_back(model.mean.item<float>() - static_cast<float>(10 * task.round));
        model.mean += 10;
        if (task.client == 2 && !std::exchange(has_failed, true)) throw std::runtime_error("no power");
        return LocalResult{.steps = 1};
      },
      {.min_clients = 3, .round_attempts = 2, .buffers = BufferRule::local});
  EXPECT_EQ(run.federation.run_round().attempt, 1);
  EXPECT_EQ(run.federation.run_round().attempt, 0);
  EXPECT_THAT(means, Each(0));
}

// All ranks train each client together, and one of them has trouble before a step that the others wait in.
struct OneGroup {
  OneGroup(const ScriptedTrainer::Script& script, const FederationOptions& options = {})
      : trainer(script),
        federation(groups, trainer, clients, std::make_unique<FedAvg>(), ThreeClients::with_clients(options)) {}

  RankGroups groups{world(), {.count = 1}};
  ScriptedClients clients{sizes};
  ScriptedTrainer trainer;
  Federation federation;
};

TEST(Federation, LeavesClientsOutThatFailOnOneRankOfAGroup) {
  OneGroup run([](TwoWeightsImpl& model, LocalTask& task) {
    task.finish_gradients(1);
    if (task.client == 1 && test::is_last_rank()) throw std::runtime_error("no power");
    task.finish_gradients(1);
    if (task.client == 2 && rank() == 0) throw std::runtime_error("no power at the end");
    return learn(model, task);
  });
  for (int round = 0; round < 2; ++round) {
    const RoundReport report = run.federation.run_round();
    ASSERT_EQ(report.dropped.size(), 2u);
    EXPECT_EQ(report.dropped[0].client, 1u);
    EXPECT_EQ(report.dropped[1].client, 2u);
    EXPECT_EQ(report.dropped[1].reason, Outcome::failed);
    EXPECT_NEAR(run.trainer.weights()[0], 1 + 8 * (round + 1), 1e-6);
  }
}

// Rank r has seen r samples, with a loss of r each.
TEST(Federation, AveragesTheLossOfAGroupByTheSamplesOfItsRanks) {
  OneGroup run([](TwoWeightsImpl& model, LocalTask& task) {
    LocalResult result = learn(model, task);
    result.loss = result.loss_samples = rank();
    return result;
  });
  double squares = 0;
  double samples = 0;
  for (int i = 0; i < ranks(); ++i) {
    squares += i * i;
    samples += i;
  }
  EXPECT_NEAR(run.federation.run_round().local_loss, samples > 0 ? squares / samples : 0, 1e-5);
}

TEST(Federation, LeavesClientsOutThatAreLateOnOneRankOfAGroup) {
  OneGroup run(
      [](TwoWeightsImpl& model, LocalTask& task) {
        if (task.client == 0 && test::is_last_rank()) {
          std::this_thread::sleep_for(std::chrono::milliseconds(600));
          task.check_time();
        }
        if (task.client != 0) task.finish_gradients(1);
        return learn(model, task);
      },
      {.client_timeout = std::chrono::milliseconds(500)});
  const RoundReport report = run.federation.run_round();
  ASSERT_EQ(report.dropped.size(), 1u);
  EXPECT_EQ(report.dropped[0].client, 0u);
  EXPECT_EQ(report.dropped[0].reason, Outcome::late);
}

TEST(Federation, NoticesRanksThatTakeDifferentNumbersOfSteps) {
  if (ranks() == 1) GTEST_SKIP() << "one rank agrees with itself";
  OneGroup run([](TwoWeightsImpl& model, LocalTask& task) {
    task.finish_gradients(1);
    if (task.client == 1 && rank() == 0) task.finish_gradients(1);
    return learn(model, task);
  });
  const RoundReport report = run.federation.run_round();
  ASSERT_EQ(report.dropped.size(), 1u);
  EXPECT_EQ(report.dropped[0].client, 1u);
  EXPECT_EQ(report.dropped[0].reason, Outcome::failed);
}

TEST(Federation, GoesOnWithoutTheClientsOfAWholeGroup) {
  ThreeClients run([](TwoWeightsImpl& model, LocalTask& task) {
    if (rank() == 0) throw std::runtime_error("this host has no power");
    return learn(model, task);
  });
  if (ranks() == 1) {
    EXPECT_THAT(usage_error_of([&] { run.federation.run_round(); }), HasSubstr("0 of 3 clients finished"));
    return;
  }
  const RoundReport report = run.federation.run_round();
  EXPECT_GT(report.dropped.size(), 0u);
  EXPECT_LT(report.dropped.size(), 3u);
}

TEST(Federation, LetsTrainersUseOptimizersAsEver) {
  OneGroup run([](TwoWeightsImpl& model, LocalTask& task) {
    const torch::AutoGradMode with_gradients(true);
    torch::optim::SGD optimizer(model.parameters(), 0.5);
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad(/*set_to_none=*/step == 1);
      (model.weights.sum() * static_cast<double>(rank() + 1)).backward();
      task.finish_gradients(1);
      optimizer.step();
    }
    return LocalResult{.steps = 2};
  });
  EXPECT_THAT(run.federation.run_round().dropped, IsEmpty());
  EXPECT_NEAR(run.trainer.weights()[1], 1 - (ranks() + 1) / 2.0, 1e-6);
}

TEST(Federation, SurvivesARoundWithoutClients) {
  FederationOptions options{.sampling = {.method = ClientSampling::poisson}};
  RankGroups groups(world());
  ScriptedClients clients(std::vector<std::size_t>(100, 1));
  ScriptedTrainer trainer([](TwoWeightsImpl& model, LocalTask&) {
    model.weights += 1;
    return LocalResult{.steps = 1};
  });
  Federation federation(groups, trainer, clients, std::make_unique<FedAvg>(), options);
  float expected = 1;
  bool was_empty = false;
  for (int round = 0; round < 10; ++round) {
    const RoundReport report = federation.run_round();
    was_empty |= report.clients.empty();
    if (!report.clients.empty()) expected += 1;
    EXPECT_NEAR(trainer.weights()[0], expected, 1e-5);
  }
  EXPECT_TRUE(was_empty) << "ten rounds with one client each on average: this seed shows nothing";
}

TEST(Federation, ClipsUpdates) {
  ThreeClients run(
      [](TwoWeightsImpl& model, LocalTask& task) {
        // Norm 5 where it is clipped to 1, and 0.5 where it is not.
        model.weights += task.client == 0 ? torch::tensor({3.F, 4.F}) : torch::tensor({0.3F, 0.4F});
        return LocalResult{.steps = 1};
      },
      {.clip_norm = 1});
  run.federation.run_round();
  EXPECT_NEAR(run.trainer.weights()[0], 1 + (1 * 0.6 + 7 * 0.3) / 8, 1e-6);
  EXPECT_NEAR(run.trainer.weights()[1], 1 + (1 * 0.8 + 7 * 0.4) / 8, 1e-6);
}

TEST(Federation, NoiseIsTheSameForTheSameSeed) {
  const auto idle = [](TwoWeightsImpl&, LocalTask&) { return LocalResult{.steps = 1}; };
  const auto weights_after = [&](std::uint64_t seed) {
    ThreeClients run(idle, {.seed = seed, .sums = SumOrder::exact, .clip_norm = 2, .noise_multiplier = 0.5});
    run.federation.run_round();
    return run.trainer.weights();
  };
  EXPECT_EQ(weights_after(1), weights_after(1));
  EXPECT_NE(weights_after(1), weights_after(2));
  // Each client's noise has deviation 1; the average's variance is (1² + 2² + 5²) / 8².
  ThreeClients run(idle, {.clip_norm = 2, .noise_multiplier = 0.5});
  double squares = 0;
  constexpr int rounds = 200;
  for (int round = 0; round < rounds; ++round) {
    const std::vector<float> before = run.trainer.weights();
    run.federation.run_round();
    const std::vector<float> after = run.trainer.weights();
    for (std::size_t i = 0; i < after.size(); ++i) squares += (after[i] - before[i]) * (after[i] - before[i]);
  }
  EXPECT_NEAR(squares / (2 * rounds), 30.0 / 64, 0.1);
}

TEST(Federation, KeepsClientStateWithItsGroup) {
  std::vector<std::size_t> trained_here;
  ThreeClients run(
      [&](TwoWeightsImpl& model, LocalTask& task) {
        trained_here.push_back(task.client);
        return learn(model, task);
      },
      {}, std::make_unique<Scaffold>(ScaffoldOptions{.clients = 3, .local_lr = 1}));
  run.federation.run_round();
  EXPECT_NEAR(run.trainer.weights()[0], 1 + 5.6 / 3, 1e-6);
  for (const std::size_t client : trained_here)
    EXPECT_EQ(client % static_cast<std::size_t>(ranks()), test::rank_index());
}

TEST(Federation, EvaluatesInParts) {
  ThreeClients run(learn);
  const Meter metrics = run.federation.evaluate();
  EXPECT_EQ(metrics.samples("parts"), ranks());
}

TEST(Federation, SaysWhichTrainersTestNoSingleClients) {
  ThreeClients run(learn);
  EXPECT_THAT(usage_error_of([&] { run.federation.evaluate_clients(); }), HasSubstr("implement test_client()"));
}

TEST(Federation, RefusesWhatCannotWork) {
  EXPECT_THAT(usage_error_of([] { ThreeClients(learn, {.min_clients = 4}); }), HasSubstr("at least 4 clients"));
  EXPECT_THAT(usage_error_of([] { ThreeClients(learn, {.noise_multiplier = 1}); }), HasSubstr("clipping norm"));
  if (ranks() == 1) return;
  RankGroups pairs(world(), {.count = 1});
  ScriptedClients clients(sizes);
  ScriptedTrainer trainer(learn);
  EXPECT_THAT(usage_error_of(
                  [&] { Federation(pairs, trainer, clients, std::make_unique<FedAvg>(), {.sums = SumOrder::exact}); }),
              HasSubstr("groups of one rank each"));
  EXPECT_THAT(mismatch_error_of([&] { ThreeClients(learn, {.seed = static_cast<std::uint64_t>(rank())}); }),
              AllOf(HasSubstr("seeds 0 and 0"), HasSubstr("seeds 1 and 0")));
}

}  // namespace
}  // namespace fedrun::fl
