// Wrong arguments are refused before anything is sent, so a rank that errs alone does no harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "support/error_text.h"
#include "support/rank_test.h"
#include "support/rank_values.h"

namespace fedrun {
namespace {

using namespace test;
using testing::HasSubstr;

class Usage : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(sum_over(world(), 1), ranks()) << "something was sent"; }

  template <typename Action>
  static void refuses(Action action, const std::string& words) {
    if (is_last_rank()) {
      EXPECT_THAT(usage_error_of(action), HasSubstr(words));
    }
  }
  void refuses_options(DataType type, const ReduceOptions& options, const std::string& words) {
    refuses([&] { world().allreduce(Buffer{values_.data(), 4, type}, options); }, "allreduce: " + words);
    refuses([&] { static_cast<void>(world().allreduce_async(Buffer{values_.data(), 4, type}, options)); }, words);
    const std::vector<Buffer> members = {as_buffer(values_), {values_.data(), 4, type}};
    refuses([&] { world().grouped_allreduce(members, options); }, "llreduce: ");
  }
  Buffer buffer(std::size_t count) { return {values_.data(), count, DataType::f32}; }
  static std::vector<std::size_t> by_rank(std::size_t each) {
    return std::vector<std::size_t>(static_cast<std::size_t>(ranks()), each);
  }

  std::array<float, 100> values_{};
  const double infinity_ = std::numeric_limits<double>::infinity();
};

TEST_F(Usage, RefusesNullPointers) {
  const Buffer nothing{nullptr, 4, DataType::f32};
  const std::string words = "null pointer for 4 elements of type f32";
  refuses([&] { world().allreduce(nothing); }, "allreduce: " + words);
  refuses([&] { world().allreduce(buffer(4), nothing); }, "allreduce: " + words);
  refuses([&] { world().broadcast(nothing); }, "broadcast: " + words);
  refuses([&] { world().reduce_scatter(nothing, buffer(4), by_rank(1)); }, "reduce_scatter: " + words);
  refuses([&] { world().allgather(nothing, buffer(4), by_rank(4)); }, "allgather: " + words);
  refuses([&] { world().gather(nothing, buffer(4), by_rank(4)); }, "gather: " + words);
  refuses([&] { world().alltoall(buffer(4), by_rank(1), nothing, by_rank(1)); }, "alltoall: " + words);
}

TEST_F(Usage, RefusesBuffersThatDoNotFit) {
  const Buffer doubles{values_.data(), 4, DataType::f64};
  refuses([&] { world().allreduce(buffer(4), buffer(5)); }, "4 elements of type f32, the output 5 of type f32");
  refuses([&] { world().allreduce(buffer(4), doubles); }, "4 elements of type f32, the output 4 of type f64");
  const std::string words = "the input has elements of type f32, the output of type f64";
  refuses([&] { world().reduce_scatter(buffer(4), doubles, by_rank(1)); }, "reduce_scatter: " + words);
  refuses([&] { world().allgather(buffer(1), doubles, by_rank(1)); }, "allgather: " + words);
  refuses([&] { world().gather(buffer(1), doubles, by_rank(1)); }, "gather: " + words);
  refuses([&] { world().alltoall(buffer(4), by_rank(1), doubles, by_rank(1)); }, "alltoall: " + words);
}

TEST_F(Usage, RefusesCountsThatDoNotFit) {
  const auto all = static_cast<std::size_t>(ranks());
  const std::vector<std::size_t> one_too_many(all + 1, 1);
  const std::string words = std::to_string(all + 1) + " counts for " + std::to_string(all) + " ranks";
  refuses([&] { world().allgather(buffer(1), buffer(all), one_too_many); }, "allgather: " + words);
  refuses([&] { world().gather(buffer(1), buffer(all), one_too_many); }, "gather: " + words);
  refuses([&] { world().reduce_scatter(buffer(all), buffer(1), one_too_many); }, "reduce_scatter: " + words);
  refuses([&] { world().alltoall(buffer(all), one_too_many, buffer(all), by_rank(1)); }, "(sent): " + words);
  refuses([&] { world().alltoall(buffer(all), by_rank(1), buffer(all), one_too_many); }, "(received): " + words);

  refuses([&] { world().allgather(buffer(2), buffer(all), by_rank(1)); }, "but its buffer has 2");
  refuses([&] { world().reduce_scatter(buffer(all), buffer(2), by_rank(1)); }, "but its buffer has 2");
  refuses([&] { world().gather(buffer(2), buffer(all), by_rank(1)); }, "but its buffer has 2");

  const std::string sum = "add up to " + std::to_string(all) + ", but the buffer has " + std::to_string(all + 1);
  refuses([&] { world().allgather(buffer(1), buffer(all + 1), by_rank(1)); }, sum);
  refuses([&] { world().gather(buffer(1), buffer(all + 1), by_rank(1), {.root = ranks() - 1}); }, sum);
  refuses([&] { world().reduce_scatter(buffer(all + 1), buffer(1), by_rank(1)); }, sum);
  refuses([&] { world().alltoall(buffer(all + 1), by_rank(1), buffer(all), by_rank(1)); }, sum);
  refuses([&] { world().alltoall(buffer(all), by_rank(1), buffer(all + 1), by_rank(1)); }, sum);
}

TEST_F(Usage, RefusesRootsOutsideTheGroup) {
  for (const int root : {-1, ranks()}) {
    const std::string words = "root " + std::to_string(root) + " is not a rank of this group";
    refuses([&] { world().broadcast(buffer(1), {.root = root}); }, "broadcast: " + words);
    refuses([&] { world().gather(buffer(1), {}, by_rank(1), {.root = root}); }, "gather: " + words);
  }
}

TEST_F(Usage, RefusesReductionsThatMakeNoSense) {
  for (const double wrong : {-1.0, std::nan(""), infinity_}) {
    refuses_options(DataType::f32, {.weight = wrong}, "weight");
  }
  refuses_options(DataType::f32, {.prescale = infinity_}, "prescale inf must be finite");
  refuses_options(DataType::f32, {.postscale = std::nan("")}, "postscale nan must be finite");
  refuses_options(DataType::f32, {.op = ReduceOp::max, .weight = 2}, "a weight has no meaning for op max");
  refuses_options(DataType::f32, {.op = ReduceOp::adasum, .weight = 2}, "a weight has no meaning for op adasum");
  refuses_options(DataType::boolean, {}, "bool elements have no average");
  refuses_options(DataType::boolean, {.op = ReduceOp::sum, .weight = 1}, "bool elements cannot be weighted");
  refuses_options(DataType::boolean, {.op = ReduceOp::max, .prescale = 2},
                  "bool elements cannot be weighted or scaled");
  refuses_options(DataType::i32, {.op = ReduceOp::adasum}, "Adasum needs elements that are floating point, not i32");
  refuses_options(DataType::f64, {.wire = DataType::f16}, "f64 elements cannot travel as f16");
  refuses_options(DataType::f32, {.wire = DataType::i8}, "f32 elements cannot travel as i8");
  refuses([&] { world().reduce_scatter(buffer(1), buffer(1), {.op = ReduceOp::adasum}); }, "reduce_scatter: ");
  const std::vector<Buffer> members = {buffer(1)};
  refuses([&] { world().grouped_allreduce(members, {.op = ReduceOp::adasum}); }, "grouped_allreduce: Adasum");
}

TEST_F(Usage, RefusesWrongGroups) {
  refuses([] { world().split({.color = -1}); }, "split: color -1");
  refuses([] { world().group(std::array{0, ranks()}); }, "is not a rank of this group");
  refuses([] { world().group(std::array{-1}); }, "-1 is not a rank of this group");
  refuses([] { world().group(std::array{0, 0}); }, "rank 0 appears twice");
}

// Begins an operation on rank 0, checks something while it is certainly under way there, and lets the others follow:
// where all ranks have begun it, a short one may be over at once.
template <typename Begin, typename Check>
void while_under_way(const Begin& begin, const Check& check) {
  std::unique_ptr<Work> work;
  if (rank() == 0) {
    work = begin();
    check();
  }
  world().barrier();
  if (rank() != 0) work = begin();
  work->wait();
}

TEST_F(Usage, RefusesANameThatIsUnderWay) {
  const std::string words = "an operation named 'busy' is under way";
  while_under_way(
      [&] { return world().allreduce_async(buffer(1), {.op = ReduceOp::max, .name = "busy"}); },
      [&] {
        EXPECT_THAT(usage_error_of([&] { world().barrier({.name = "busy"}); }), HasSubstr(words));
        EXPECT_THAT(usage_error_of([&] { world().allreduce(buffer(1), {.name = "busy"}); }), HasSubstr(words));
        EXPECT_THAT(usage_error_of([&] { world().broadcast(buffer(1), {.name = "busy"}); }), HasSubstr(words));
      });
  world().barrier({.name = "busy"});  // free again
}

TEST_F(Usage, RefusesAnAdasumWhoseNameIsUnderWay) {
  auto other = values_;
  const ReduceOptions options{.op = ReduceOp::adasum, .name = "busy"};
  while_under_way(
      [&] { return world().allreduce_async(values_, options); },
      [&] { EXPECT_THAT(usage_error_of([&] { world().allreduce(other, options); }), HasSubstr("is under way")); });
  world().allreduce(values_, options);
}

TEST_F(Usage, RefusesAGroupWhoseNameIsUnderWay) {
  const std::vector<Buffer> members = {buffer(1), buffer(2)};
  const auto group_is_refused = [&] {
    EXPECT_THAT(usage_error_of([&] { world().grouped_allreduce(members, {.name = "group"}); }),
                HasSubstr("an operation named 'group' is under way"));
  };
  while_under_way([] { return world().barrier_async({.name = "group"}); }, group_is_refused);
  while_under_way([&] { return world().grouped_allreduce_async(members, {.name = "group"}); },
                  [&] {
                    group_is_refused();
                    EXPECT_THAT(usage_error_of([] { world().barrier({.name = "group"}); }), HasSubstr("is under way"));
                  });
  world().barrier({.name = "group"});
}

TEST_F(Usage, EnqueuesNoMemberIfOneIsWrong) {
  const std::vector<Buffer> members = {buffer(1), {nullptr, 1, DataType::f32}};
  EXPECT_THROW(world().grouped_allreduce(members, {.name = "half"}), UsageError);
  world().barrier({.name = "half"});
  const std::vector<Communicator::Gathered> parts = {{buffer(1), buffer(static_cast<std::size_t>(ranks())), by_rank(1)},
                                                     {buffer(1), buffer(1), by_rank(2)}};
  EXPECT_THROW(world().grouped_allgather(parts, {.name = "half"}), UsageError);
  world().barrier({.name = "half"});
  const std::vector<Communicator::Scattered> scattered = {{buffer(1), buffer(world().equal_parts(1)[rank_index()]), {}},
                                                          {buffer(1), buffer(9), {}}};
  EXPECT_THROW(world().grouped_reduce_scatter(scattered, {.name = "half"}), UsageError);
  world().barrier({.name = "half"});
}

TEST_F(Usage, TakesEmptyBuffersWithoutMemory) {
  world().allreduce(Buffer{nullptr, 0, DataType::f32});
  world().broadcast(Buffer{nullptr, 0, DataType::u8}, {.root = ranks() - 1});
  world().allgather({}, {}, by_rank(0));
  world().gather({}, {}, by_rank(0));
  world().alltoall({}, by_rank(0), {}, by_rank(0));
  world().reduce_scatter({}, {}, by_rank(0));
}

}  // namespace
}  // namespace fedrun
