#include <fedrun/core/error.h>
#include <fedrun/train/agreement.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/rank_test.h"

namespace fedrun {
namespace {

using test::world;

TEST(Agreement, PassesWhereAllSayTheSame) {
  check_agreement(world(), "things", {"a", "b"});
  check_agreement(world(), "things", {});
}

TEST(Agreement, NamesTheFirstDifferenceOnEveryRank) {
  if (world().size() == 1) GTEST_SKIP() << "one rank cannot disagree";
  const bool is_last = world().rank() == world().size() - 1;
  try {
    check_agreement(world(), "parameters", {"same", is_last ? "odd" : "even", is_last ? "x" : "y"});
    FAIL() << "no error";
  } catch (const MismatchError& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("parameters differ between ranks, first at number 1: rank 0 has even, rank " +
                                   std::to_string(world().size() - 1) + " has odd"));
  }
  check_agreement(world(), "afterwards", {"still works"});
}

TEST(Agreement, SeesMissingLines) {
  if (world().size() == 1) GTEST_SKIP() << "one rank cannot disagree";
  std::vector<std::string> lines = {"one"};
  if (world().rank() == 0) lines.push_back("two");
  try {
    check_agreement(world(), "lines", lines);
    FAIL() << "no error";
  } catch (const MismatchError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("number 1: rank 0 has two, rank 1 has nothing"));
  }
}

}  // namespace
}  // namespace fedrun
