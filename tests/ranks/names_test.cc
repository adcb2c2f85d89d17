// Operations with names, which ranks submit and wait for in different orders.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "support/rank_test.h"
#include "support/rank_values.h"
#include "support/shared_seed.h"

namespace fedrun {
namespace {

using namespace test;

// Elements to reduce, different in number for each, so that no two operations can be taken for each other.
class Sum {
 public:
  Sum(std::string name, std::size_t number) : name_(std::move(name)), number_(number) {}

  void start(Communicator& group) {
    group_ = &group;
    elements_ = elements_of<float>(group.rank(), number_ % 7 == 0 ? 5'000 + 100 * number_ : number_ + 1);
    work_ = group.allreduce_async(elements_, {.op = ReduceOp::sum, .name = name_});
  }
  void run(Communicator& group) {
    start(group);
    wait();
  }
  bool done() { return work_->done(); }
  void wait() { work_->wait(); }
  testing::AssertionResult is_right() const {
    return match(elements_,
                 [&](std::size_t index) { return reduced<float>(ReduceOp::sum, first_ranks(group_->size()), index); })
           << " in '" << name_ << "'";
  }

 private:
  std::string name_;
  std::size_t number_;
  Communicator* group_ = nullptr;
  Elements<float> elements_{0};
  std::unique_ptr<Work> work_{};
};

class Names : public testing::Test {
 protected:
  // Different on every rank.
  Random own_random() { return Random(seed_ + static_cast<std::uint32_t>(rank())); }

  std::uint32_t seed_ = shared_seed();
};

TEST_F(Names, MatchFarMoreThanTheBoardHolds) {
  constexpr std::size_t count = 300;
  Random random = own_random();
  std::deque<Sum> sums;
  for (std::size_t i = 0; i < count; ++i) sums.emplace_back(fmt::format("gradient {}", i), i);
  for (const std::size_t i : shuffled(count, random)) sums[i].start(world());
  for (const std::size_t i : shuffled(count, random)) sums[i].wait();
  for (const Sum& sum : sums) ASSERT_TRUE(sum.is_right());
}

TEST_F(Names, AreUsedAgainRoundAfterRound) {
  Random random = own_random();
  for (int round = 0; round < 10; ++round) {
    std::deque<Sum> sums;
    for (std::size_t i = 0; i < 40; ++i) sums.emplace_back(fmt::format("gradient {}", i), i);
    for (const std::size_t i : shuffled(sums.size(), random)) sums[i].start(world());
    for (const std::size_t i : shuffled(sums.size(), random)) {
      while (!sums[i].done()) {
      }
    }
    for (const Sum& sum : sums) ASSERT_TRUE(sum.is_right()) << "round " << round;
  }
}

TEST_F(Names, MixWithOperationsThatHaveNone) {
  // Those without a name keep their order; those with one come anywhere between them.
  Random random = own_random();
  std::deque<Sum> named;
  std::deque<Sum> unnamed;
  for (std::size_t i = 0; i < 100; ++i) {
    named.emplace_back(fmt::format("named {}", i), i);
    unnamed.emplace_back("", 1000 + i);
  }
  std::size_t next_unnamed = 0;
  std::size_t next_named = 0;
  const auto order = shuffled(named.size(), random);
  while (next_unnamed < unnamed.size() || next_named < named.size()) {
    const bool take_named = next_unnamed == unnamed.size() || (next_named < named.size() && random() % 2 == 0);
    take_named ? named[order[next_named++]].start(world()) : unnamed[next_unnamed++].start(world());
  }
  for (Sum& sum : named) sum.wait();
  for (Sum& sum : unnamed) sum.wait();
  for (const Sum& sum : named) ASSERT_TRUE(sum.is_right());
  for (const Sum& sum : unnamed) ASSERT_TRUE(sum.is_right());
}

// Every rank starts the named ones at another time: some before, some after those that block.
void expect_no_hold_up(Random& random, std::size_t named_count) {
  std::deque<Sum> named;
  for (std::size_t i = 0; i < named_count; ++i) named.emplace_back(fmt::format("named {}", i), i);
  const auto order = shuffled(named.size(), random);
  std::size_t started = 0;
  for (std::size_t blocking = 0; blocking < 20; ++blocking) {
    for (std::size_t some = random() % 10; some > 0 && started < order.size(); --some) {
      named[order[started++]].start(world());
    }
    Sum sum("", blocking);
    sum.run(world());
    ASSERT_TRUE(sum.is_right());
  }
  while (started < order.size()) named[order[started++]].start(world());
  for (Sum& sum : named) sum.wait();
  for (const Sum& sum : named) ASSERT_TRUE(sum.is_right());
}

TEST_F(Names, DoNotHoldUpABlockingOperation) {
  Random random = own_random();
  for (int round = 0; round < 5; ++round) expect_no_hold_up(random, 40);
}

TEST_F(Names, LetALaterOperationFinishFirst) {
  if (ranks() == 1) GTEST_SKIP() << "one rank is never late";
  for (int late = 0; late < ranks(); ++late) {
    for (const std::size_t number : {3U, 700U}) {  // small and large
      Sum early_sum("early", number);
      Sum later_sum("later", number);
      if (rank() != late) early_sum.start(world());
      later_sum.start(world());
      while (!later_sum.done()) {
      }
      EXPECT_TRUE(later_sum.is_right());
      if (rank() != late) {
        EXPECT_FALSE(early_sum.done()) << "rank " << late << " has not submitted it";
      }
      world().barrier();
      if (rank() == late) early_sum.start(world());
      early_sum.wait();
      EXPECT_TRUE(early_sum.is_right());
    }
  }
}

TEST_F(Names, AreToldApartBeyondWhatMessagesShow) {
  const std::string common(200, 'x');
  Sum first(common + "1", 5);
  Sum second(common + "2", 6);
  (rank() % 2 == 0 ? first : second).start(world());
  (rank() % 2 == 0 ? second : first).start(world());
  first.wait();
  second.wait();
  EXPECT_TRUE(first.is_right());
  EXPECT_TRUE(second.is_right());
}

TEST_F(Names, BelongToTheirGroup) {
  // Two groups that overlap: the same name in both, submitted and waited for in different orders.
  Communicator reversed = world().split({.key = -rank()});
  Communicator pair = world().split({.color = rank() / 2});
  Random random = own_random();
  for (int round = 0; round < 10; ++round) {
    std::deque<Sum> sums;
    const std::vector<Communicator*> groups = {&world(), &reversed, &pair};
    for (std::size_t i = 0; i < 30; ++i) sums.emplace_back(fmt::format("name {}", i / groups.size()), i);
    for (const std::size_t i : shuffled(sums.size(), random)) sums[i].start(*groups[i % groups.size()]);
    for (const std::size_t i : shuffled(sums.size(), random)) sums[i].wait();
    for (const Sum& sum : sums) ASSERT_TRUE(sum.is_right()) << "round " << round;
  }
}

TEST_F(Names, OfGroupsWaitedForInOppositeOrders) {
  Communicator other = world().split({.key = -rank()});
  for (int round = 0; round < 20; ++round) {
    Sum here("", 700);
    Sum there("", 707);
    (rank() % 2 == 0 ? here : there).start(rank() % 2 == 0 ? world() : other);
    (rank() % 2 == 0 ? there : here).start(rank() % 2 == 0 ? other : world());
    (rank() % 2 == 0 ? here : there).wait();
    (rank() % 2 == 0 ? there : here).wait();
    ASSERT_TRUE(here.is_right());
    ASSERT_TRUE(there.is_right());
  }
}

}  // namespace
}  // namespace fedrun
