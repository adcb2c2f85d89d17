// Ranks that run out of data at different times.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "support/error_text.h"
#include "support/rank_test.h"
#include "support/rank_values.h"

namespace fedrun {
namespace {

using namespace test;
using testing::HasSubstr;

// In which order the members of a group run out: each begins once, upwards and downwards. `batches` is by rank; no two
// ranks have as many, so the one with the most reduces its last batch alone, after all others have joined.
std::vector<std::vector<int>> all_batches(int members) {
  std::vector<std::vector<int>> all;
  for (int first = 0; first < members; ++first) {
    for (const int direction : {1, -1}) {
      std::vector<int>& batches = all.emplace_back();
      for (int each = 0; each < members; ++each) batches.push_back(((each - first) * direction + members) % members);
    }
  }
  return all;
}
int batches_of(const std::vector<int>& batches, int member) { return batches[static_cast<std::size_t>(member)]; }
int last_of(const std::vector<int>& batches) {
  return static_cast<int>(std::ranges::max_element(batches) - batches.begin());
}
std::vector<int> taking_part(const std::vector<int>& batches, int batch) {
  std::vector<int> members;
  for (int each = 0; each < static_cast<int>(batches.size()); ++each) {
    if (batches_of(batches, each) > batch) members.push_back(each);
  }
  return members;
}
std::size_t count_of(int batch) { return batch % 2 == 0 ? 17 : 20'011; }

// Calls use(batch, who takes part in it) for each batch of this rank, then joins.
template <typename Use>
void run_out(Communicator& group, const std::vector<int>& batches, Use use) {
  for (int batch = 0; batch < batches_of(batches, group.rank()); ++batch) use(batch, taking_part(batches, batch));
  EXPECT_EQ(group.join(), last_of(batches)) << "batches " << testing::PrintToString(batches);
  EXPECT_EQ(sum_over(group, 1), group.size()) << "the group does not work afterwards";
}

TEST(Join, LeavesOutWhoHasJoined) {
  for (const ReduceOp op : reduce_ops) {
    for (const auto& batches : all_batches(ranks())) {
      run_out(world(), batches, [&](int batch, const std::vector<int>& taking) {
        auto values = elements_of<double>(rank(), count_of(batch));
        world().allreduce(values, {.op = op});
        ASSERT_TRUE(match(values, [&](std::size_t i) { return reduced<double>(op, taking, i); })) << to_string(op);
      });
    }
  }
}

TEST(Join, LetsWeightsDecideAmongTheOthers) {
  for (const auto& batches : all_batches(ranks())) {
    run_out(world(), batches, [&](int batch, const std::vector<int>& taking) {
      double weights = 0;
      double weighted = 0;
      for (const int each : taking) {
        weights += each + 1;
        weighted += each * (each + 1);
      }
      std::vector<double> values(count_of(batch), rank());
      world().allreduce(values, {.weight = rank() + 1});
      ASSERT_EQ(values.front(), weighted / weights);
      ASSERT_EQ(values.back(), weighted / weights);
    });
  }
}

TEST(Join, LetsTheOthersReduceScatter) {
  for (const auto& batches : all_batches(ranks())) {
    run_out(world(), batches, [&](int batch, const std::vector<int>& taking) {
      const std::size_t count = count_of(batch);
      const auto counts = world().equal_parts(count);
      const auto input = elements_of<float>(rank(), count);
      Elements<float> part(counts[rank_index()]);
      world().reduce_scatter(as_const_buffer(input), as_buffer(part), {.op = ReduceOp::average});
      const std::size_t first = total({counts.begin(), counts.begin() + rank()});
      ASSERT_TRUE(match(
          part, [&](std::size_t i) { return reduced<float>(ReduceOp::average, taking, i); }, first));
    });
  }
}

TEST(Join, LetsTheOthersUseNamesInAnyOrder) {
  for (const auto& batches : all_batches(ranks())) {
    run_out(world(), batches, [&](int batch, const std::vector<int>& taking) {
      std::vector<Elements<float>> values;
      std::vector<std::unique_ptr<Work>> works;
      for (int i = 0; i < 30; ++i) values.push_back(elements_of<float>(rank(), i % 10 == 0 ? 5'000 : 10));
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t shifted = (i * 7 + 11 * rank_index()) % values.size();
        works.push_back(world().allreduce_async(
            values[shifted], {.op = ReduceOp::sum, .name = fmt::format("batch {} value {}", batch, shifted)}));
      }
      for (const auto& work : works) work->wait();
      for (const auto& each : values) {
        ASSERT_TRUE(match(each, [&](std::size_t i) { return reduced<float>(ReduceOp::sum, taking, i); }));
      }
    });
  }
}

TEST(Join, LetsTheOthersReduceGroups) {
  for (const auto& batches : all_batches(ranks())) {
    run_out(world(), batches, [&](int, const std::vector<int>& taking) {
      auto first = elements_of<std::int32_t>(rank(), 5);
      auto second = elements_of<std::int32_t>(rank(), 4'097);
      const std::vector<Buffer> members = {as_buffer(first), as_buffer(second)};
      world().grouped_allreduce(members, {.op = ReduceOp::sum});
      const auto sum = [&](std::size_t i) { return reduced<std::int32_t>(ReduceOp::sum, taking, i); };
      ASSERT_TRUE(match(first, sum));
      ASSERT_TRUE(match(second, sum));
    });
  }
}

TEST(Join, AnswersWhatWasStartedBefore) {
  // Rank 0 joins while an operation of its own is under way, which the others start only later.
  auto values = elements_of<float>(rank(), 20'011);
  if (rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto work = world().allreduce_async(values, {.op = ReduceOp::sum, .name = "started before"});
  world().join();
  work->wait();
  EXPECT_TRUE(match(values, [](std::size_t i) { return reduced<float>(ReduceOp::sum, first_ranks(ranks()), i); }));
}

TEST(Join, TwiceInARowReturnsWhoWasLastEachTime) {
  for (int last = 0; last < ranks(); ++last) {
    if (rank() == last) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(world().join(), last);
  }
  world().join();
  world().join();
  EXPECT_EQ(sum_over(world(), 1), ranks());
}

TEST(Join, RefusesAllButReductionsMeanwhile) {
  if (ranks() == 1) GTEST_SKIP() << "nobody is left when the only rank has joined";
  for (int first = 0; first < ranks(); ++first) {
    if (rank() != first) {
      std::vector<float> values(4);
      const std::string words = fmt::format("rank {} has joined", first);
      EXPECT_THAT(mismatch_error_of([&] { world().broadcast(values, {.root = ranks() - 1}); }), HasSubstr(words));
      EXPECT_THAT(mismatch_error_of([&] { world().barrier(); }), HasSubstr(words));
      std::vector<float> large(20'011);
      EXPECT_THAT(mismatch_error_of([&] { world().broadcast(large); }), HasSubstr(words));
      EXPECT_THAT(mismatch_error_of([&] { world().gather_counts(1); }), HasSubstr(words));
      EXPECT_EQ(sum_over(world(), 1), ranks() - 1) << "reductions must work on";
    }
    world().join();
    EXPECT_EQ(sum_over(world(), 1), ranks());
  }
}

TEST(Join, IsOnlyForItsGroup) {
  // The ranks from 1 on, in reverse.
  std::vector<int> members;
  for (int each = ranks() - 1; each > 0; --each) members.push_back(each);
  std::optional<Communicator> group = world().group(members);
  if (group) {
    for (const auto& batches : all_batches(group->size())) {
      run_out(*group, batches, [&](int batch, const std::vector<int>& taking) {
        auto values = elements_of<float>(group->rank(), count_of(batch));
        group->allreduce(values, {.op = ReduceOp::sum});
        ASSERT_TRUE(match(values, [&](std::size_t i) { return reduced<float>(ReduceOp::sum, taking, i); }));
      });
    }
  }
  EXPECT_EQ(sum_over(world(), 1), ranks());
}

}  // namespace
}  // namespace fedrun
