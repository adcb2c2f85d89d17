#include <fedrun/collectives/engine_backend.h>
#include <fedrun/fl/round_sum.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/error_text.h"

namespace fedrun::fl {
namespace {

class Sums : public testing::TestWithParam<SumOrder> {
 protected:
  Communicator world_{make_self_backend()};
  RankGroups groups_{world_};
  RoundSum sum_{groups_, {.values = 3, .numbers = 2}, GetParam()};
};

TEST_P(Sums, AddsWeightedValuesAndNumbers) {
  sum_.clear(2);
  sum_.add(0, torch::tensor({1.F, 2.F, 3.F}), 0.5);
  sum_.add(1, torch::tensor({4.F, 8.F}), 0.25);
  sum_.add_number(1, 7);
  sum_.reduce();
  EXPECT_TRUE(torch::equal(sum_.values(0, 3), torch::tensor({0.5F, 2.F, 3.5F})));
  EXPECT_EQ(sum_.number(0), 0);
  EXPECT_EQ(sum_.number(1), 7);
  sum_.clear(1);
  EXPECT_TRUE(torch::equal(sum_.values(0, 3), torch::zeros(3)));
  EXPECT_EQ(sum_.number(0), 0);
}

TEST_P(Sums, KnowsWhatFits) {
  EXPECT_TRUE(sum_.fits(torch::tensor({-1000.F, 0.F})));
  EXPECT_TRUE(sum_.fits(torch::zeros(0)));
  EXPECT_FALSE(sum_.fits(torch::tensor({1.F, std::nanf("")})));
  EXPECT_FALSE(sum_.fits(torch::tensor({-INFINITY, 1.F})));
  EXPECT_EQ(sum_.fits(torch::tensor({1e6F})), GetParam() == SumOrder::fast);
}

TEST_P(Sums, HasNoMoreRoomThanItWasGiven) {
  EXPECT_EQ(test::usage_error_of([&] { sum_.clear(3); }), "a round's sum has room for 2 numbers, not for 3");
}

INSTANTIATE_TEST_SUITE_P(Orders, Sums, testing::Values(SumOrder::fast, SumOrder::exact),
                         [](const auto& order) { return order.param == SumOrder::fast ? "fast" : "exact"; });

TEST(ExactSums, HoldLossesOfAnySize) {
  Communicator world(make_self_backend());
  RankGroups groups(world);
  RoundSum sum(groups, {.numbers = 3}, SumOrder::exact);
  for (int client = 0; client < 2; ++client) {
    sum.add_number(0, 1e30, 0.5);
    sum.add_number(1, -INFINITY, 0.5);
    sum.add_number(2, std::nan(""), 0.5);
  }
  sum.reduce();
  EXPECT_EQ(sum.number(0), 0x1p22);
  EXPECT_EQ(sum.number(1), -0x1p22);
  EXPECT_EQ(sum.number(2), 0x1p22);
}

TEST(ExactSums, DoNotDependOnTheOrder) {
  Communicator world(make_self_backend());
  RankGroups groups(world);
  torch::manual_seed(1);
  const torch::Tensor values = torch::randn({50, 100}) * torch::logspace(-6, 2, 50).unsqueeze(1);
  const auto sum_in_order = [&](SumOrder order, bool backwards) {
    RoundSum sum(groups, {.values = 100}, order);
    for (int i = 0; i < 50; ++i) sum.add(0, values[backwards ? 49 - i : i], 0.02);
    return sum.values(0, 100).clone();
  };
  EXPECT_TRUE(torch::equal(sum_in_order(SumOrder::exact, false), sum_in_order(SumOrder::exact, true)));
  EXPECT_FALSE(torch::equal(sum_in_order(SumOrder::fast, false), sum_in_order(SumOrder::fast, true)))
      << "the values are too tame to show the difference";
  const torch::Tensor mean = values.to(torch::kFloat64).mean(0).to(torch::kFloat32);
  EXPECT_TRUE(torch::allclose(sum_in_order(SumOrder::exact, false), mean, 1e-6, 1e-7));
}

}  // namespace
}  // namespace fedrun::fl
