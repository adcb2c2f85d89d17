// The collectives with ranks that are threads, so that ThreadSanitizer and AddressSanitizer see what they do to each
// other.
#include "support/thread_ranks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "support/rank_values.h"

namespace fedrun {
namespace {

using namespace test;

// By rank: on which host it pretends to be.
class ThreadRanks : public testing::TestWithParam<std::vector<int>> {
 protected:
  template <typename Body>
  static void run(Body body) {
    run_as_threads(GetParam(), body);
  }
};
INSTANTIATE_TEST_SUITE_P(Hosts, ThreadRanks,
                         testing::Values(std::vector{0}, std::vector{0, 0, 0}, std::vector{0, 0, 0, 0},
                                         std::vector{0, 1, 2}, std::vector{0, 0, 1, 1}, std::vector{0, 1, 0, 2}));

// On the board, one chunk, several chunks.
constexpr std::array<std::size_t, 3> counts = {17, 4'097, 100'003};

template <typename Result>
testing::AssertionResult is_sum(std::span<const Result> values, const std::vector<int>& ranks) {
  return match(values, [&](std::size_t index) { return reduced<Result>(ReduceOp::sum, ranks, index); });
}

// Reduces what this rank brings, in ordinary memory, and looks at the result.
void expect_sum(Communicator& group, std::size_t count, const std::vector<int>& taking_part) {
  auto values = elements_of<float>(group.rank(), count);
  group.allreduce(values, {.op = ReduceOp::sum});
  EXPECT_TRUE(is_sum(std::span<const float>(values), taking_part));
}

TEST_P(ThreadRanks, Reduce) {
  run([](Communicator& world, ThreadMeeting& meeting) {
    const std::vector<int> everyone = first_ranks(world.size());
    for (int round = 0; round < 20; ++round) expect_sum(world, counts[0], everyone);
    for (const std::size_t count : counts) {
      expect_sum(world, count, everyone);
      const Memory memory = world.allocate(count * sizeof(float));
      const std::span<float> allocated(static_cast<float*>(memory.data()), count);
      std::ranges::copy(elements_of<float>(world.rank(), count), allocated.begin());
      world.allreduce(allocated, {.op = ReduceOp::sum});
      EXPECT_TRUE(is_sum(std::span<const float>(allocated), everyone));
      meeting.wait();
    }
  });
}

TEST_P(ThreadRanks, Exchange) {
  run([](Communicator& world, ThreadMeeting&) {
    for (const std::size_t count : counts) {
      auto values = elements_of<std::int32_t>(world.rank(), count);
      world.broadcast(values, {.root = world.size() - 1});
      EXPECT_TRUE(are_elements_of(world.size() - 1, std::span<const std::int32_t>(values)));
      const std::vector<std::size_t> all_counts(static_cast<std::size_t>(world.size()), count);
      const auto mine = elements_of<std::int32_t>(world.rank(), total(all_counts));
      Elements<std::int32_t> all(total(all_counts));
      world.alltoall(as_const_buffer(mine), all_counts, as_buffer(all), all_counts);
      const std::size_t first = count * static_cast<std::size_t>(world.rank());
      for (int from = 0; from < world.size(); ++from) {
        const std::span<const std::int32_t> part(all.begin() + count * static_cast<std::size_t>(from), count);
        EXPECT_TRUE(are_elements_of(from, part, first));
      }
    }
  });
}

TEST_P(ThreadRanks, UseNamesInDifferentOrders) {
  run([](Communicator& world, ThreadMeeting&) {
    constexpr std::size_t operations = 100;
    std::vector<Elements<float>> values;
    std::vector<std::unique_ptr<Work>> works(operations);
    for (std::size_t i = 0; i < operations; ++i) {
      values.push_back(elements_of<float>(world.rank(), counts[i % 2] + i));
    }
    for (std::size_t i = 0; i < operations; ++i) {
      const std::size_t turned = (i * 7 + 31 * static_cast<std::size_t>(world.rank())) % operations;
      works[turned] =
          world.allreduce_async(values[turned], {.op = ReduceOp::sum, .name = fmt::format("operation {}", turned)});
    }
    for (const auto& work : works) work->wait();
    for (const auto& each : values) {
      ASSERT_TRUE(is_sum(std::span<const float>(each), first_ranks(world.size())));
    }
  });
}

TEST_P(ThreadRanks, FormGroups) {
  run([](Communicator& world, ThreadMeeting& meeting) {
    std::vector<int> members;
    for (int each = world.size() - 1; each > 0; --each) members.push_back(each);
    Communicator reversed = world.split({.key = -world.rank()});
    std::optional<Communicator> rest = world.group(members);
    for (const std::size_t count : counts) {
      auto values = elements_of<float>(world.rank(), count);
      const auto work = world.allreduce_async(values, {.op = ReduceOp::sum});
      expect_sum(reversed, count, first_ranks(reversed.size()));
      if (rest) expect_sum(*rest, count, first_ranks(rest->size()));
      work->wait();
      EXPECT_TRUE(is_sum(std::span<const float>(values), first_ranks(world.size())));
    }
    meeting.wait();
  });
}

TEST_P(ThreadRanks, Join) {
  run([](Communicator& world, ThreadMeeting&) {
    for (int first = 0; first < world.size(); ++first) {
      // No two ranks have as many batches.
      const auto batches_of = [&](int rank) { return (rank - first + world.size()) % world.size(); };
      for (int batch = 0; batch < batches_of(world.rank()); ++batch) {
        std::vector<int> taking_part;
        for (int rank = 0; rank < world.size(); ++rank) {
          if (batches_of(rank) > batch) taking_part.push_back(rank);
        }
        expect_sum(world, counts[static_cast<std::size_t>(batch) % counts.size()], taking_part);
      }
      world.join();
      expect_sum(world, counts[0], first_ranks(world.size()));
    }
  });
}

TEST_P(ThreadRanks, AddUpWithAdasum) {
  run([](Communicator& world, ThreadMeeting&) {
    const auto input = elements_of<float>(7, counts[1]);  // the same everywhere: their average
    Elements<float> output(counts[1]);
    world.allreduce(as_const_buffer(input), as_buffer(output), {.op = ReduceOp::adasum});
    EXPECT_TRUE(are_elements_of(7, std::span<const float>(output)));
  });
}

}  // namespace
}  // namespace fedrun
