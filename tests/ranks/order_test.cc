// Operations that ranks submit in orders so different that hundreds are under way before the first can be carried out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "support/rank_test.h"
#include "support/rank_values.h"
#include "support/shared_seed.h"

namespace fedrun {
namespace {

using namespace test;

// One allreduce with a name; each is of another length, so that no two can be taken for each other.
class NamedSum {
 public:
  NamedSum(std::string name, std::size_t count)
      : name_(std::move(name)), elements_(elements_of<float>(rank(), count)) {}

  void start() { work_ = world().allreduce_async(elements_, {.op = ReduceOp::sum, .name = name_}); }
  bool done() { return work_->done(); }
  void wait() { work_->wait(); }
  testing::AssertionResult is_sum_of(const std::vector<int>& taking_part) const {
    return match(elements_, [&](std::size_t index) { return reduced<float>(ReduceOp::sum, taking_part, index); })
           << " in '" << name_ << "'";
  }

 private:
  std::string name_;
  Elements<float> elements_;
  std::unique_ptr<Work> work_{};
};

std::deque<NamedSum> make_sums(std::size_t number, std::size_t shortest) {
  std::deque<NamedSum> sums;
  for (std::size_t i = 0; i < number; ++i) sums.emplace_back(fmt::format("sum {}", i), shortest + i);
  return sums;
}

// Even ranks go up, odd ranks go down.
std::vector<std::size_t> opposite_order(std::size_t number) {
  std::vector<std::size_t> order(number);
  std::iota(order.begin(), order.end(), 0);
  if (rank() % 2 == 1) std::ranges::reverse(order);
  return order;
}

void expect_sums(const std::deque<NamedSum>& sums) {
  for (const NamedSum& sum : sums) ASSERT_TRUE(sum.is_sum_of(first_ranks(ranks())));
}

TEST(Order, MayBeOppositeForAThousand) {
  auto sums = make_sums(1'000, 1);
  for (const std::size_t i : opposite_order(sums.size())) sums[i].start();
  for (const std::size_t i : opposite_order(sums.size())) sums[i].wait();
  expect_sums(sums);
}

TEST(Order, MayBeOppositeForLargeOnes) {
  auto sums = make_sums(1'200, 1'025);  // none fits on the board, and there are more than files may be open at first
  for (const std::size_t i : opposite_order(sums.size())) sums[i].start();
  for (const std::size_t i : opposite_order(sums.size())) sums[i].wait();
  expect_sums(sums);
}

// The newest of a rank that has submitted everything is the first, and for a while the only one, of the others.
template <typename Wait>
void expect_no_wait_for_the_oldest(std::size_t shortest, Wait wait) {
  for (int early = 0; early < ranks(); ++early) {
    auto sums = make_sums(300, shortest);
    NamedSum& newest = sums.back();
    if (rank() == early) {
      for (NamedSum& sum : sums) sum.start();
      wait(newest);
    } else {
      newest.start();
      wait(newest);
      Random random(static_cast<std::uint32_t>(rank()));
      for (const std::size_t i : shuffled(sums.size() - 1, random)) sums[i].start();
    }
    for (NamedSum& sum : sums) sum.wait();
    expect_sums(sums);
  }
}

TEST(Order, LetsTheNewestFinishBeforeTheOldest) {
  const auto wait = [](NamedSum& sum) { sum.wait(); };
  expect_no_wait_for_the_oldest(1, wait);
  expect_no_wait_for_the_oldest(2'000, wait);
}

TEST(Order, LetsTheNewestFinishForWhoeverOnlyAsks) {
  expect_no_wait_for_the_oldest(1, [](NamedSum& sum) {
    while (!sum.done()) {
    }
  });
}

TEST(Order, IsNotHeldUpByOneThatWaitsForLong) {
  if (ranks() == 1) GTEST_SKIP() << "one rank is never late";
  for (int late = 0; late < ranks(); ++late) {
    NamedSum straggler("straggler", 7);
    if (rank() != late) straggler.start();
    for (std::size_t i = 0; i < 500; ++i) {
      auto elements = elements_of<float>(rank(), 1 + i % 3 * 1'000);
      world().allreduce(elements, {.op = ReduceOp::sum});
      ASSERT_TRUE(match(elements, [&](std::size_t index) {
        return reduced<float>(ReduceOp::sum, first_ranks(ranks()), index);
      })) << i;
    }
    if (rank() == late) straggler.start();
    straggler.wait();
    ASSERT_TRUE(straggler.is_sum_of(first_ranks(ranks())));
  }
}

// With rank 0 joined, the order is that of rank 1, of whose operations the last is the first of all others.
TEST(Order, IsNotHeldUpWhileRank0HasJoined) {
  if (ranks() < 3) GTEST_SKIP() << "it takes one that joins and two that differ";
  if (rank() == 0) {
    EXPECT_NE(world().join(), 0);
    return;
  }
  std::vector<int> taking_part = first_ranks(ranks());
  taking_part.erase(taking_part.begin());
  auto sums = make_sums(300, 1);
  if (rank() != 1) {
    sums.back().start();
    sums.back().wait();
    sums.pop_back();
  }
  for (NamedSum& sum : sums) sum.start();
  for (NamedSum& sum : sums) sum.wait();
  for (const NamedSum& sum : sums) EXPECT_TRUE(sum.is_sum_of(taking_part));
  world().join();
}

}  // namespace
}  // namespace fedrun
