// Each algorithm against an example of three clients that was computed by hand.
#include <fedrun/fl/algorithm.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "support/error_text.h"

namespace fedrun::fl {
namespace {

using test::usage_error_of;
using testing::HasSubstr;

// One weight, which is 10 at first.
class ThreeClients {
 public:
  struct Client {
    double samples;
    std::int64_t steps;
    double delta;
  };

  explicit ThreeClients(Algorithm& algorithm) : algorithm_(algorithm) {}

  // What the federation does, spelt out.
  double round(const std::array<Client, 3>& clients) {
    RoundAverage average{.clients = 3, .delta = torch::zeros(1), .extra = torch::zeros(algorithm_.extra_parts())};
    double total = 0;
    for (const Client& client : clients) total += algorithm_.weight_of(client.samples);
    for (std::size_t i = 0; i < clients.size(); ++i) {
      ClientUpdate update{.client = i,
                          .steps = clients[i].steps,
                          .delta = torch::full({1}, clients[i].delta),
                          .extra = torch::zeros(algorithm_.extra_parts())};
      algorithm_.prepare(update);
      const double share = algorithm_.weight_of(clients[i].samples) / total;
      average.delta.add_(update.delta, share);
      average.extra.add_(update.extra, share);
      average.scalar += share * update.scalar;
    }
    algorithm_.apply(weights_, average);
    return weights_.item<double>();
  }

  // The gradient 1 of a client whose weights have come to `local`, as the algorithm corrects it.
  double corrected(std::size_t client, double local) {
    const torch::Tensor gradient = torch::ones(1);
    algorithm_.correct_gradients(client, gradient, torch::full({1}, local), weights_);
    return gradient.item<double>();
  }

 private:
  Algorithm& algorithm_;
  torch::Tensor weights_ = torch::full({1}, 10.0);
};

constexpr std::array<ThreeClients::Client, 3> clients = {{{1, 2, 8}, {2, 4, -4}, {5, 8, 1.6}}};
// Σ pΔ = (1·8 − 2·4 + 5·1.6) / 8 = 1.
constexpr double tolerance = 1e-6;

TEST(FedAvg, AddsTheWeightedMean) {
  FedAvg algorithm;
  EXPECT_FALSE(algorithm.corrects_gradients());
  ThreeClients example(algorithm);
  EXPECT_NEAR(example.round(clients), 11, tolerance);
  EXPECT_NEAR(example.round(clients), 12, tolerance);
}

TEST(FedProx, PullsTowardsTheGlobalWeights) {
  FedProx algorithm(0.5);
  EXPECT_TRUE(algorithm.corrects_gradients());
  ThreeClients example(algorithm);
  EXPECT_NEAR(example.corrected(0, 12), 1 + 0.5 * 2, tolerance);
  EXPECT_NEAR(example.corrected(0, 10), 1, tolerance);
  EXPECT_NEAR(example.round(clients), 11, tolerance);
  EXPECT_THAT(usage_error_of([] { FedProx(-1); }), HasSubstr("mu is -1"));
}

TEST(ServerOptimizers, RefuseOptionsThatMakeNoSense) {
  EXPECT_THAT(usage_error_of([] { FedAvgM({.lr = 0}); }), HasSubstr("rate of 0 is not above 0"));
  EXPECT_THAT(usage_error_of([] { FedAvgM({.momentum = 1}); }), HasSubstr("server's momentum of 1"));
  const auto adam = [](const FedOptOptions& options) { FedOpt(ServerOptimizer::adam, options); };
  EXPECT_THAT(usage_error_of([&] { adam({.lr = -1}); }), HasSubstr("rate of -1"));
  EXPECT_THAT(usage_error_of([&] { adam({.beta1 = 1}); }), HasSubstr("beta1 of 1"));
  EXPECT_THAT(usage_error_of([&] { adam({.beta2 = -0.1}); }), HasSubstr("beta2 of -0.1"));
  EXPECT_THAT(usage_error_of([&] { adam({.tau = 0}); }), HasSubstr("tau of 0"));
  EXPECT_THAT(usage_error_of([] { Scaffold({.clients = 3, .local_lr = 1, .global_lr = 0}); }), HasSubstr("rate of 0"));
}

TEST(FedAvgM, Remembers) {
  FedAvgM algorithm({.lr = 0.5, .momentum = 0.8});
  ThreeClients example(algorithm);
  EXPECT_NEAR(example.round(clients), 10.5, tolerance);              // m = 1
  EXPECT_NEAR(example.round(clients), 10.5 + 0.5 * 1.8, tolerance);  // m = 0.8 + 1
}

TEST(FedOpt, DividesByTheRootOfSquares) {
  // Δ = 1, β₁ = 0.5, β₂ = 0.75, τ = 0.5: m is 0.5, then 0.75; v starts at 0.25.
  const FedOptOptions options{.lr = 2, .beta1 = 0.5, .beta2 = 0.75, .tau = 0.5};
  struct Case {
    ServerOptimizer kind;
    const char* name;
    double first_v;
    double second_v;
  };
  for (const Case& expected :
       {Case{ServerOptimizer::adagrad, "fedadagrad", 1.25, 2.25},
        Case{ServerOptimizer::adam, "fedadam", 0.4375, 0.578125}, Case{ServerOptimizer::yogi, "fedyogi", 0.5, 0.75}}) {
    FedOpt algorithm(expected.kind, options);
    EXPECT_EQ(algorithm.name(), expected.name);
    ThreeClients example(algorithm);
    const double first = 10 + 2 * 0.5 / (std::sqrt(expected.first_v) + 0.5);
    EXPECT_NEAR(example.round(clients), first, 1e-5) << expected.name;
    EXPECT_NEAR(example.round(clients), first + 2 * 0.75 / (std::sqrt(expected.second_v) + 0.5), 1e-5) << expected.name;
  }
}

TEST(FedNova, DoesNotFavourThoseWhoTakeMoreSteps) {
  FedNova algorithm;
  ThreeClients example(algorithm);
  // Σ pa = (1·2 + 2·4 + 5·8)/8 = 6.25; Σ pΔ/a = (1·4 − 2·1 + 5·0.2)/8 = 0.375.
  EXPECT_NEAR(example.round(clients), 10 + 6.25 * 0.375, tolerance);
}

TEST(FedNova, KnowsMomentum) {
  FedNova algorithm(0.5);
  ClientUpdate update{.steps = 2, .delta = torch::full({1}, 5.0)};
  algorithm.prepare(update);
  // Two steps of momentum 0.5 move by 1, then 1.5 gradients.
  EXPECT_NEAR(update.scalar, 2.5, tolerance);
  EXPECT_NEAR(update.delta.item<double>(), 2, tolerance);
  ClientUpdate idle{.steps = 0, .delta = torch::zeros(1)};
  algorithm.prepare(idle);
  EXPECT_EQ(idle.delta.item<double>(), 0);
  EXPECT_THAT(usage_error_of([] { FedNova(1); }), HasSubstr("from 0 to below 1"));
}

TEST(FedNova, EqualStepsAreFedAvg) {
  FedNova algorithm;
  std::array<ThreeClients::Client, 3> equal = clients;
  for (auto& client : equal) client.steps = 7;
  EXPECT_NEAR(ThreeClients(algorithm).round(equal), 11, 1e-5);
}

TEST(Scaffold, CorrectsTheDriftOfClients) {
  Scaffold algorithm({.clients = 6, .local_lr = 0.5, .global_lr = 2});
  ThreeClients example(algorithm);
  EXPECT_NEAR(example.corrected(0, 10), 1, tolerance);
  // cₖ⁺ = −Δ/(Kη): −8/1 = −8, 4/2 = 2, −1.6/4 = −0.4. Clients count the same: mean Δ = 5.6/3.
  double weight = 10 + 2 * 5.6 / 3;
  EXPECT_NEAR(example.round(clients), weight, 1e-5);
  const double control = (-8 + 2 - 0.4) / 6;
  EXPECT_NEAR(example.corrected(0, 0), 1 + 8 + control, 1e-5);
  EXPECT_NEAR(example.corrected(1, 0), 1 - 2 + control, 1e-5);
  EXPECT_NEAR(example.corrected(5, 0), 1 + control, 1e-5) << "a client that has never trained";
  // In the second round cₖ⁺ − cₖ = −c − Δ/(Kη), the same for the three as in the first but for c.
  weight += 2 * 5.6 / 3;
  EXPECT_NEAR(example.round(clients), weight, 1e-5);
  const double second = control + (-8 + 2 - 0.4 - 3 * control) / 6;
  EXPECT_NEAR(example.corrected(5, 0), 1 + second, 1e-5);
  EXPECT_NEAR(example.corrected(1, 0), 1 - (2 - control + 2) + second, 1e-5);
  EXPECT_THAT(usage_error_of([] { Scaffold({.clients = 3}); }), HasSubstr("learning rate"));
}

TEST(Scaffold, LeavesTheRestOfACorrectionToMomentum) {
  Scaffold algorithm({.clients = 6, .local_lr = 0.5, .local_momentum = 0.75, .global_lr = 2});
  ThreeClients example(algorithm);
  example.round(clients);
  const double control = (-8 + 2 - 0.4) / 6;
  EXPECT_NEAR(example.corrected(1, 0), 1 + (control - 2) / 4, 1e-5);
  EXPECT_THAT(usage_error_of([] { Scaffold({.clients = 3, .local_lr = 1, .local_momentum = 1}); }),
              HasSubstr("momentum of 1"));
}

}  // namespace
}  // namespace fedrun::fl
