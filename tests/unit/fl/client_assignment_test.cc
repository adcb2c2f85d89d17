#include <fedrun/fl/client_assignment.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fedrun::fl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Costs = std::vector<double>;

TEST(AssignByCost, GivesTheLargestToTheIdlest) {
  EXPECT_THAT(assign_by_cost(Costs{1, 8, 3, 4}, 2), ElementsAre(ElementsAre(1), ElementsAre(3, 2, 0)));
  EXPECT_THAT(assign_by_cost(Costs{5, 5, 5, 5}, 2), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
  EXPECT_THAT(assign_by_cost(Costs{1, 2, 3}, 1), ElementsAre(ElementsAre(2, 1, 0)));
}

TEST(AssignByCost, TakesMoreGroupsThanClients) {
  EXPECT_THAT(assign_by_cost(Costs{1, 2}, 3), ElementsAre(ElementsAre(1), ElementsAre(0), IsEmpty()));
  EXPECT_THAT(assign_by_cost({}, 2), ElementsAre(IsEmpty(), IsEmpty()));
}

}  // namespace
}  // namespace fedrun::fl
