// Linear models are trained without autograd: federated rounds must not show it.
#include <fedrun/data/synthetic_clients.h>
#include <fedrun/fl/classification_trainer.h>
#include <fedrun/fl/federation.h>
#include <fedrun/models/chain.h>
#include <gtest/gtest.h>

#include "support/rank_test.h"

namespace fedrun::fl {
namespace {

using test::ranks;
using test::world;

constexpr std::int64_t features = 60;
constexpr std::int64_t classes = 10;

enum class Gradients { by_hand, autograd };

// With one layer more, which does nothing, the trainer does not see that the model is linear.
models::Model make_linear(bool has_sigmoid, Gradients gradients) {
  torch::manual_seed(7);
  models::Chain chain(torch::nn::Flatten(), torch::nn::Linear(features, classes));
  if (has_sigmoid) chain->push_back(torch::nn::Sigmoid());
  if (gradients == Gradients::autograd) chain->push_back(torch::nn::Identity());
  return models::Model(torch::nn::AnyModule(chain), {features}, classes);
}

struct Training {
  ClassificationOptions options{.epochs = 2, .batch_size = 20, .lr = 0.1};
  int groups = 0;
  bool has_sigmoid = true;
  std::string_view algorithm = "fedavg";
};

std::unique_ptr<Algorithm> make_algorithm(std::string_view name) {
  if (name == "fedprox") return std::make_unique<FedProx>(0.1);
  if (name == "scaffold") return std::make_unique<Scaffold>(ScaffoldOptions{.clients = 6, .local_lr = 0.1});
  return std::make_unique<FedAvg>();
}

struct Learnt {
  torch::Tensor weights;
  double local_loss;
};

Learnt train(const Training& training, Gradients gradients) {
  static const data::FeatureSet set =
      data::make_synthetic_clients({.alpha = 0.5, .beta = 0.5, .clients = 6, .seed = 4});
  const TensorClients clients(samples_of(set), data::split_each_client(set.clients, 0.9));
  RankGroups all(world(), {.count = training.groups});
  ClassificationTrainer trainer(make_linear(training.has_sigmoid, gradients), clients, training.options);
  Federation federation(all, trainer, clients, make_algorithm(training.algorithm), {.clients_per_round = 4});
  federation.run_round();
  const double local_loss = federation.run_round().local_loss;
  return {federation.global_state().clone(), local_loss};
}

void expect_no_difference(const Training& training) {
  const Learnt expected = train(training, Gradients::autograd);
  const Learnt learnt = train(training, Gradients::by_hand);
  EXPECT_LT((learnt.weights - expected.weights).abs().max().item<double>(), 1e-4);
  EXPECT_NEAR(learnt.local_loss, expected.local_loss, 1e-4);
}

TEST(LinearTraining, LearnsWhatAutogradLearns) {
  for (const bool has_sigmoid : {true, false}) expect_no_difference({.has_sigmoid = has_sigmoid});
}

TEST(LinearTraining, WithCorrectionsMomentumAndAdam) {
  expect_no_difference({.algorithm = "fedprox"});
  expect_no_difference({.algorithm = "scaffold"});
  expect_no_difference({.options = {.batch_size = 20, .lr = 0.1, .momentum = 0.9}});
  expect_no_difference({.options = {.batch_size = 20, .optimizer = ClientOptimizer::adam, .lr = 1e-3}});
}

TEST(LinearTraining, InGroupsOfRanks) {
  for (int groups = 1; groups <= ranks(); ++groups) expect_no_difference({.groups = groups});
}

}  // namespace
}  // namespace fedrun::fl
