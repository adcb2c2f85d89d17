// Whatever the ranks may disagree about: every rank hears of it, in words, and the group works afterwards.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/error_text.h"
#include "support/rank_test.h"
#include "support/rank_values.h"

namespace fedrun {
namespace {

using namespace test;
using testing::AllOf;
using testing::HasSubstr;

// One size for the board and one for which memory has to be reached.
class Mismatch : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (ranks() == 1) GTEST_SKIP() << "one rank agrees with itself";
  }
  void TearDown() override { EXPECT_EQ(sum_over(world(), 1), ranks()) << "the group does not work afterwards"; }

  static std::size_t count() { return GetParam(); }
  static Buffer buffer(std::size_t elements = count()) {
    static Elements<float> values(200'000);  // whatever its elements mean
    return {values.begin(), elements, DataType::f32};
  }
  static Buffer buffer_of(DataType type) { return {buffer().data, count(), type}; }
  static std::string elements(const char* type = "f32") { return std::to_string(count()) + " " + type; }
  static std::string last() { return "rank " + std::to_string(ranks() - 1); }

  // The last rank does one thing, the others another.
  static void expect(const std::function<void()>& ours, const std::string& our_words, const std::function<void()>& odd,
                     const std::string& odd_words) {
    const std::string text = mismatch_error_of(is_last_rank() ? odd : ours);
    EXPECT_THAT(text, AllOf(HasSubstr("rank 0 calls " + our_words), HasSubstr(last() + " calls " + odd_words)));
  }
  static void expect_options(const ReduceOptions& ours, const std::string& our_words, const ReduceOptions& odd,
                             const std::string& odd_words) {
    for (const bool is_async : {false, true}) {
      const auto allreduce = [&](const ReduceOptions& options) {
        is_async ? world().allreduce_async(buffer(), options)->wait() : world().allreduce(buffer(), options);
      };
      expect([&] { allreduce(ours); }, "an allreduce (" + our_words + ") of " + elements(), [&] { allreduce(odd); },
             "an allreduce (" + odd_words + ") of " + elements());
    }
  }
  // Disagreement about counts is told without listing all of them.
  static void expect_counts(const std::function<void()>& action, const std::string& words) {
    EXPECT_THAT(mismatch_error_of(action),
                AllOf(HasSubstr(words), HasSubstr("ranks 0 and " + std::to_string(ranks() - 1)),
                      HasSubstr("give different numbers of elements for the ranks")));
  }
  // Everyone brings count(), but the last rank thinks that rank 0 brings something else.
  static std::vector<std::size_t> doubtful_counts(std::size_t difference) {
    std::vector<std::size_t> counts(static_cast<std::size_t>(ranks()), count());
    if (is_last_rank()) counts.front() += difference;
    return counts;
  }
};
INSTANTIATE_TEST_SUITE_P(SmallAndLarge, Mismatch, testing::Values(8, 20'011));

TEST_P(Mismatch, OfKind) {
  expect([] { world().allreduce(buffer(), {.op = ReduceOp::sum}); }, "an allreduce (sum) of " + elements(),
         [] { world().broadcast(buffer()); }, "a broadcast of " + elements() + " from rank 0");
  expect([] { world().barrier(); }, "a barrier", [] { world().allreduce(buffer()); },
         "an allreduce (average) of " + elements());
  const std::vector<std::size_t> counts(static_cast<std::size_t>(ranks()), 3);
  const std::size_t all = total(counts);
  expect([&] { world().allgather(buffer(3), buffer(all), counts); }, "an allgather of f32",
         [&] { world().alltoall(buffer(all), counts, buffer(all), counts); }, "an alltoall of f32");
  expect([&] { world().gather(buffer(3), buffer(rank() == 0 ? all : 0), counts); }, "a gather of f32 at rank 0",
         [&] { world().reduce_scatter(buffer(all), buffer(3), counts); }, "a reduce_scatter (average) of ");
}

TEST_P(Mismatch, OfKindUnderTheSameName) {
  expect([] { world().allreduce(buffer(), {.op = ReduceOp::sum, .name = "step 7"}); },
         "an allreduce (sum) of " + elements() + " named 'step 7'",
         [] { world().broadcast(buffer(), {.root = 1, .name = "step 7"}); },
         "a broadcast of " + elements() + " from rank 1 named 'step 7'");
}

TEST_P(Mismatch, OfType) {
  expect([] { world().allreduce(buffer_of(DataType::f32)); }, "an allreduce (average) of " + elements("f32"),
         [] { world().allreduce(buffer_of(DataType::i32)); }, "an allreduce (average) of " + elements("i32"));
  expect([] { world().broadcast(buffer_of(DataType::f16)); }, "a broadcast of " + elements("f16"),
         [] { world().broadcast(buffer_of(DataType::bf16)); }, "a broadcast of " + elements("bf16"));
}

TEST_P(Mismatch, OfCount) {
  for (const std::size_t odd : {count() + 1, std::size_t{0}, std::size_t{100'003}}) {
    expect([] { world().allreduce(buffer()); }, "an allreduce (average) of " + elements(),
           [&] { world().allreduce(buffer(odd)); }, "an allreduce (average) of " + std::to_string(odd) + " f32");
    expect([] { world().broadcast(buffer()); }, "a broadcast of " + elements(), [&] { world().broadcast(buffer(odd)); },
           "a broadcast of " + std::to_string(odd) + " f32");
  }
}

TEST_P(Mismatch, OfReduceOptions) {
  expect_options({.op = ReduceOp::sum}, "sum", {.op = ReduceOp::max}, "max");
  expect_options({}, "average", {.weight = 1}, "average, weighted");
  expect_options({.prescale = 0.5}, "average, prescale 0.5", {}, "average");
  expect_options({.postscale = 3}, "average, postscale 3", {.postscale = 2}, "average, postscale 2");
  expect_options({.wire = DataType::f16}, "average, f16 on the wire", {.wire = DataType::bf16},
                 "average, bf16 on the wire");
  expect_options({}, "average", {.wire = DataType::bf16}, "average, bf16 on the wire");
}

TEST_P(Mismatch, OfAdasumAndSum) { expect_options({.op = ReduceOp::adasum}, "adasum", {.op = ReduceOp::sum}, "sum"); }

TEST_P(Mismatch, OfRoot) {
  expect([] { world().broadcast(buffer()); }, "a broadcast of " + elements() + " from rank 0",
         [] { world().broadcast(buffer(), {.root = 1}); }, "a broadcast of " + elements() + " from rank 1");
  const std::vector<std::size_t> counts(static_cast<std::size_t>(ranks()), count());
  const auto gather_at = [&](int root) {
    world().gather(buffer(), buffer(rank() == root ? total(counts) : 0), counts, {.root = root});
  };
  expect([&] { gather_at(1); }, "a gather of f32 at rank 1", [&] { gather_at(0); }, "a gather of f32 at rank 0");
}

TEST_P(Mismatch, OfCountsByRank) {
  const auto counts = doubtful_counts(1);
  expect_counts([&] { world().allgather(buffer(), buffer(total(counts)), counts); }, "call an allgather of f32");
  const std::size_t all = is_last_rank() ? total(counts) : 0;
  expect_counts([&] { world().gather(buffer(), buffer(all), counts, {.root = ranks() - 1}); },
                "call a gather of f32 at " + last());
}

TEST_P(Mismatch, OfReduceScatterParts) {
  // As many elements in all, dealt out differently between rank 0 and a rank that does not look: itself.
  std::vector<std::size_t> counts(static_cast<std::size_t>(ranks()), count());
  if (is_last_rank()) {
    counts.front() += 1;
    counts.back() -= 1;
  }
  expect_counts([&] { world().reduce_scatter(buffer(total(counts)), buffer(counts[rank_index()]), counts); },
                "call a reduce_scatter (average)");
}

TEST_P(Mismatch, OfAlltoallSplits) {
  const std::vector<std::size_t> sent(static_cast<std::size_t>(ranks()), count());
  const auto expected = doubtful_counts(2);
  EXPECT_THAT(
      mismatch_error_of([&] { world().alltoall(buffer(total(sent)), sent, buffer(total(expected)), expected); }),
      HasSubstr("rank 0 sends " + std::to_string(count()) + " elements to " + last() + ", which expects " +
                std::to_string(count() + 2)));
}

TEST_P(Mismatch, OfOneMemberFailsTheWholeGroup) {
  for (const char* name : {"", "together"}) {
    Elements<float> good(3);
    std::ranges::fill(good, 5.0F);
    const std::vector<Buffer> members = {as_buffer(good), buffer(is_last_rank() ? count() + 1 : count())};
    EXPECT_THAT(
        mismatch_error_of([&] { world().grouped_allreduce(members, {.op = ReduceOp::sum, .name = name}); }),
        AllOf(HasSubstr("a grouped allreduce (sum) of 2 buffers"),
              HasSubstr(fmt::format("buffer 1 has {} f32 on rank 0 and {} f32 on {}", count(), count() + 1, last()))));
    EXPECT_TRUE(match(good, [](std::size_t) { return 5.0F; })) << "one member was reduced";
  }
}

TEST_P(Mismatch, OfTheNumberOfMembers) {
  const auto reduce = [](std::size_t members) {
    world().grouped_allreduce(std::vector<Buffer>(members, buffer()), {.op = ReduceOp::sum});
  };
  expect([&] { reduce(2); }, "a grouped allreduce (sum) of 2 buffers", [&] { reduce(3); },
         "a grouped allreduce (sum) of 3 buffers");
  expect([&] { reduce(1); }, "a grouped allreduce (sum) of 1 buffer", [] { world().barrier(); }, "a barrier");
}

TEST_P(Mismatch, LeavesOthersThatAreUnderWayAlone) {
  auto before = elements_of<float>(rank(), 20'011);
  auto after = elements_of<float>(rank(), 17);
  const auto first = world().allreduce_async(before, {.op = ReduceOp::sum});
  const auto wrong = world().allreduce_async(buffer(is_last_rank() ? count() + 1 : count()), {.name = "wrong"});
  const auto last = world().allreduce_async(after, {.op = ReduceOp::sum});
  last->wait();
  first->wait();
  EXPECT_THROW(wrong->wait(), MismatchError);
  EXPECT_TRUE(wrong->done());
  EXPECT_THROW(wrong->wait(), MismatchError) << "asked again";
  const auto sum = [](std::size_t index) { return reduced<float>(ReduceOp::sum, first_ranks(ranks()), index); };
  EXPECT_TRUE(match(before, sum));
  EXPECT_TRUE(match(after, sum));
  static_cast<void>(world().barrier_async({.name = "wrong"}));  // the name is free again
}

}  // namespace
}  // namespace fedrun
