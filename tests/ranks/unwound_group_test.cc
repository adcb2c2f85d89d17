// A group that an exception ends leaves nothing behind into which MPI writes what the other ranks still send.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/rank_test.h"

namespace fedrun {
namespace {

using namespace test;
using namespace std::chrono_literals;

// Takes the memory that was freed a moment ago, and sees whether somebody writes into it.
class Canaries {
 public:
  Canaries() {
    for (const std::size_t bytes : {256, 512, 1024, 2048, 4096, 16 << 10, 128 << 10, 1 << 20}) {
      for (int i = 0; i < 16; ++i) birds_.emplace_back(bytes, colour);
    }
  }
  bool are_well() const {
    return std::ranges::all_of(birds_, [](const auto& bird) {
      return std::ranges::all_of(bird, [](std::byte feather) { return feather == colour; });
    });
  }

 private:
  static constexpr std::byte colour{0x5A};
  std::vector<std::vector<std::byte>> birds_;
};

// Sees to what is under way for this long.
void poll(Work& work, std::chrono::milliseconds duration) {
  const auto enough = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < enough && !work.done()) std::this_thread::yield();
}

// Every rank but the first leaves the group by an exception; what the first sends afterwards must reach nobody.
void leave_by_exception(std::size_t count, bool has_all_arrive) {
  std::vector<float> mine(count, 1);  // stays: it is the program's, and MPI's until it ends the messages
  std::unique_ptr<Canaries> canaries;
  try {
    Communicator group = world().split({.color = 0});
    world().barrier();
    std::unique_ptr<Work> work;
    std::vector<std::unique_ptr<Work>> barriers;
    if (rank() == 0 || has_all_arrive) work = group.allreduce_async(mine, {.op = ReduceOp::sum});
    if (rank() == 0) {
      std::this_thread::sleep_for(50ms);  // others have left by now; no result depends on it
      for (int i = 0; i < 20; ++i) barriers.push_back(group.barrier_async());
      poll(*work, 30ms);
    } else if (work) {
      poll(*work, 20ms);
    }
    throw std::runtime_error("of the program's own");
  } catch (const std::runtime_error&) {
    canaries = std::make_unique<Canaries>();
  }
  world().barrier();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sum_over(world(), 1), ranks());  // whatever is on its way arrives
  EXPECT_TRUE(canaries->are_well());
}

TEST(UnwoundGroup, LateRecordsReachNobody) {
  for (int round = 0; round < 5; ++round) leave_by_exception(1, false);
}

TEST(UnwoundGroup, LateElementsReachNobody) {
  if (process().env().backend != BackendChoice::mpi) GTEST_SKIP() << "ranks of one host write into each other's memory";
  for (int round = 0; round < 5; ++round) leave_by_exception(300'000, true);
}

// Left by one rank only, and without an exception by the others.
TEST(UnwoundGroup, NewGroupsWorkAfterwards) {
  for (int round = 0; round < 5; ++round) {
    try {
      Communicator group = world().split({.color = 0});
      EXPECT_EQ(sum_over(group, 1), ranks());
      if (is_last_rank()) throw std::runtime_error("of the program's own");
    } catch (const std::runtime_error&) {
    }
    Communicator next = world().split({.color = 0});
    EXPECT_EQ(sum_over(next, rank()), ranks() * (ranks() - 1) / 2);
  }
}

}  // namespace
}  // namespace fedrun
