// Holds the choice of clients against numpy's, because published results depend on who took part.
#include <fedrun/sampler/client_sampler.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "support/error_text.h"

namespace fedrun {
namespace {

using test::usage_error_of;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Lt;

using Clients = std::vector<std::size_t>;

Clients everybody(std::size_t total) {
  Clients clients(total);
  std::iota(clients.begin(), clients.end(), std::size_t{0});
  return clients;
}

TEST(ClientSampler, DrawsWhatNumpyDraws) {
  const ClientSampler sampler(1000, 10);
  EXPECT_THAT(sampler.clients_of_round(0), ElementsAre(993, 859, 298, 553, 672, 971, 27, 231, 306, 706));
  EXPECT_THAT(sampler.clients_of_round(1), ElementsAre(507, 818, 452, 368, 242, 929, 262, 810, 318, 49));
}

TEST(ClientSampler, TakesEverybodyInOrderWhereEverybodyTrains) {
  EXPECT_EQ(ClientSampler(7, 7).clients_of_round(3), everybody(7));
  EXPECT_EQ(ClientSampler(7, 7, {.method = ClientSampling::poisson}).clients_of_round(3), everybody(7));
  EXPECT_THAT(ClientSampler(1, 1).clients_of_round(0), ElementsAre(0));
}

TEST(ClientSampler, DrawsDifferentClientsThatExist) {
  for (const std::size_t total : {2, 3, 8, 9, 255, 256, 257}) {
    for (std::uint64_t round = 0; round < 20; ++round) {
      const Clients clients = ClientSampler(total, total - 1).clients_of_round(round);
      EXPECT_EQ(std::set(clients.begin(), clients.end()).size(), total - 1);
      EXPECT_THAT(clients, Each(Lt(total)));
    }
  }
}

TEST(ClientSampler, DependsOnSeedAndRoundAlone) {
  for (const ClientSampling method : {ClientSampling::fixed, ClientSampling::poisson}) {
    const ClientSampler sampler(1000, 50, {.method = method, .seed = 5});
    const Clients third = sampler.clients_of_round(3);
    EXPECT_NE(sampler.clients_of_round(4), third);
    EXPECT_EQ(sampler.clients_of_round(3), third);
    EXPECT_NE(ClientSampler(1000, 50, {.method = method, .seed = 6}).clients_of_round(3), third);
    EXPECT_NE(ClientSampler(1000, 50, {.method = method}).clients_of_round(3), third);
  }
}

TEST(ClientSampler, ChoosesOthersInAnotherAttempt) {
  for (const ClientSampling method : {ClientSampling::fixed, ClientSampling::poisson}) {
    const ClientSampler sampler(1000, 10, {.method = method});
    EXPECT_EQ(sampler.clients_of_round(3, 1), sampler.clients_of_round(3, 1));
    EXPECT_NE(sampler.clients_of_round(3, 1), sampler.clients_of_round(3));
    EXPECT_NE(sampler.clients_of_round(3, 1), sampler.clients_of_round(3, 2));
    EXPECT_NE(sampler.clients_of_round(3, 1), sampler.clients_of_round(4));
  }
}

TEST(ClientSampler, ChoosesEveryClientEquallyOften) {
  constexpr int rounds = 4000;
  for (const ClientSampling method : {ClientSampling::fixed, ClientSampling::poisson}) {
    std::vector<int> chosen(20);
    const ClientSampler sampler(20, 5, {.method = method, .seed = 1});
    for (std::uint64_t round = 0; round < rounds; ++round) {
      for (const std::size_t client : sampler.clients_of_round(round)) ++chosen[client];
    }
    const double deviation = std::sqrt(rounds * 0.25 * 0.75);
    for (const int count : chosen) EXPECT_NEAR(count, rounds * 0.25, 4 * deviation);
  }
}

TEST(ClientSampler, PoissonVariesTheNumberOfClients) {
  const ClientSampler sampler(1000, 10, {.method = ClientSampling::poisson});
  double sum = 0;
  double squares = 0;
  constexpr int rounds = 2000;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const auto count = static_cast<double>(sampler.clients_of_round(round).size());
    sum += count;
    squares += count * count;
  }
  const double mean = sum / rounds;
  EXPECT_NEAR(mean, 10, 0.3);
  EXPECT_NEAR(squares / rounds - mean * mean, 1000 * 0.01 * 0.99, 1.2);
}

TEST(ClientSampler, RefusesRoundsThatCannotBe) {
  EXPECT_EQ(usage_error_of([] { ClientSampler(10, 11); }),
            "11 of 10 clients cannot train in a round: choose a number from 1 to 10");
  EXPECT_THAT(usage_error_of([] { ClientSampler(10, 0); }), HasSubstr("0 of 10 clients"));
  EXPECT_THAT(usage_error_of([] { ClientSampler(std::size_t{1} << 32, 1); }),
              AllOf(HasSubstr("4294967296 clients"), HasSubstr("2^32 - 1")));
}

}  // namespace
}  // namespace fedrun
