// Tensors of every type, layout and awkward size, with small integers, whose results are exact in every type.
#include <fedrun/core/error.h>
#include <fedrun/train/tensor_collectives.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <thread>

#include "support/error_text.h"
#include "support/rank_test.h"
#include "support/torch_device.h"

namespace fedrun {
namespace {

using test::usage_error_of;
using test::world;
using testing::HasSubstr;

constexpr std::array all_types = {torch::kUInt8,    torch::kInt8,    torch::kInt32,   torch::kInt64, torch::kFloat16,
                                  torch::kBFloat16, torch::kFloat32, torch::kFloat64, torch::kBool};
constexpr ReduceOptions sum{.op = ReduceOp::sum};

int ranks() { return world().size(); }
int me() { return world().rank(); }
int sum_of_ranks() { return ranks() * (ranks() - 1) / 2; }

// 0, 1, 2, … in this shape, plus what is added.
torch::Tensor counting(torch::IntArrayRef sizes, int added = 0) {
  return test::arange(c10::multiply_integers(sizes), torch::kFloat32).reshape(sizes) + added;
}

// The rows of a rank in tests where rank r brings r of them, each [r, r + 1].
torch::Tensor rows_of(int rank) { return test::tensor({rank, rank + 1}, torch::kFloat32).repeat({rank, 1}); }

void expect_equal(const torch::Tensor& actual, const torch::Tensor& expected) {
  EXPECT_EQ(actual.sizes(), expected.sizes());
  EXPECT_EQ(actual.scalar_type(), expected.scalar_type());
  EXPECT_TRUE(torch::equal(actual, expected)) << actual << "\ninstead of\n" << expected;
}

// Shapes and layouts of the same few kinds for every operation; values start at `added`.
Tensors awkward_tensors(int added) {
  return {counting({2, 3}, added),
          counting({}, added),
          counting({0, 4}, added),
          counting({3, 0}, added),
          counting({2, 3}, added).t(),
          counting({12}, added).slice(0, 0, 12, 2),
          counting({2, 3, 4, 5}, added).contiguous(torch::MemoryFormat::ChannelsLast),
          counting({40, 50}, added)};
}

std::string mismatch_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const MismatchError& error) {
    return error.what();
  }
  return "no MismatchError";
}

TEST(TensorAllreduce, LeavesItsArgumentAlone) {
  for (const torch::Tensor& tensor : awkward_tensors(me())) {
    const torch::Tensor before = tensor.clone();
    expect_equal(allreduce(world(), tensor, sum), (tensor - me()) * ranks() + sum_of_ranks());
    expect_equal(allreduce_async(world(), tensor, sum).wait(), (tensor - me()) * ranks() + sum_of_ranks());
    expect_equal(tensor, before);
  }
}

TEST(TensorAllreduce, WritesIntoAnyLayout) {
  for (const auto reduce :
       {+[](const torch::Tensor& tensor) { return allreduce_(world(), tensor, sum); },
        +[](const torch::Tensor& tensor) { return allreduce_async_(world(), tensor, sum).wait(); },
        +[](const torch::Tensor& tensor) { return grouped_allreduce_(world(), {tensor}, sum)[0]; }}) {
    for (const torch::Tensor& tensor : awkward_tensors(me())) {
      const torch::Tensor expected = (tensor - me()) * ranks() + sum_of_ranks();
      EXPECT_TRUE(reduce(tensor).is_same(tensor));
      expect_equal(tensor, expected);
    }
  }
}

TEST(TensorAllreduce, LeavesElementsBetweenStridesAlone) {
  const torch::Tensor whole = test::zeros({6});
  allreduce_(world(), whole.slice(0, 0, 6, 2).fill_(1), sum);
  expect_equal(whole, test::tensor({ranks(), 0, ranks(), 0, ranks(), 0}, torch::kFloat32));
}

TEST(TensorAllreduce, PollingPutsTheResultInPlace) {
  const torch::Tensor tensor = test::ones({3, 2}).t();
  PendingTensor pending = allreduce_async_(world(), tensor, sum);
  while (!pending.done()) std::this_thread::yield();
  expect_equal(tensor, test::full({2, 3}, ranks(), torch::kFloat32));
  EXPECT_TRUE(pending.done());
  EXPECT_TRUE(pending.wait().is_same(tensor));
}

TEST(TensorAllreduce, KeepsItsTensorsWhileItRuns) {
  std::vector<PendingTensor> pending;
  for (int i = 0; i < 20; ++i) {
    pending.push_back(allreduce_async(world(), test::full({1000 + i}, i, torch::kFloat32), sum));
  }
  for (int i = 19; i >= 0; --i) {
    expect_equal(pending[static_cast<std::size_t>(i)].wait(), test::full({1000 + i}, i * ranks(), torch::kFloat32));
  }
}

TEST(TensorAllreduce, MatchesByName) {
  std::array<std::string, 2> names = {"first", "second"};
  if (me() % 2 == 1) std::swap(names[0], names[1]);
  std::vector<PendingTensor> pending;
  for (const std::string& name : names) {
    const double value = name == "first" ? 1 : 10;
    pending.push_back(allreduce_async(world(), test::full({3}, value), {.op = ReduceOp::sum, .name = name}));
  }
  const std::size_t first = me() % 2 == 0 ? 0 : 1;
  expect_equal(pending[first].wait(), test::full({3}, ranks(), torch::kFloat32));
  expect_equal(pending[1 - first].wait(), test::full({3}, 10 * ranks(), torch::kFloat32));
}

TEST(TensorAllreduce, TakesEveryType) {
  for (const torch::ScalarType type : all_types) {
    const torch::Tensor ones = test::ones({5}, type);
    expect_equal(allreduce(world(), ones, sum), type == torch::kBool ? ones : ones * ranks());
    expect_equal(allreduce_(world(), test::full({2}, me() == 0, type), {.op = ReduceOp::max}), test::ones({2}, type));
  }
}

TEST(TensorAllreduce, PassesItsOptionsOn) {
  const double weight = me() + 1;
  const torch::Tensor average = allreduce(world(), test::full({2}, 3.0), {.weight = weight, .prescale = 2});
  expect_equal(average, test::full({2}, 6.0));
  EXPECT_EQ(allreduce(world(), test::tensor(me()), {.op = ReduceOp::max}).item<int>(), ranks() - 1);
}

TEST(TensorAllreduce, GroupsTensorsOfDifferentTypes) {
  const Tensors reduced =
      grouped_allreduce(world(), {test::ones({3, 2}).t(), test::ones({}, torch::kInt64), test::empty({0})}, sum);
  expect_equal(reduced[0], test::full({2, 3}, ranks(), torch::kFloat32));
  expect_equal(reduced[1], test::full({}, ranks(), torch::kInt64));
  expect_equal(reduced[2], test::empty({0}));
  EXPECT_TRUE(grouped_allreduce(world(), {}).empty());
}

TEST(TensorBroadcast, FromEveryRoot) {
  for (int root = 0; root < ranks(); ++root) {
    for (const torch::Tensor& tensor : awkward_tensors(me())) {
      const torch::Tensor before = tensor.clone();
      const torch::Tensor expected = tensor - me() + root;
      expect_equal(broadcast(world(), tensor, {.root = root}), expected);
      expect_equal(tensor, before);
      expect_equal(broadcast_(world(), tensor, {.root = root}), expected);
      expect_equal(tensor, expected);
    }
  }
}

TEST(TensorBroadcast, TakesEveryType) {
  for (const torch::ScalarType type : all_types) {
    expect_equal(broadcast(world(), test::full({3}, me() == 0, type)), test::ones({3}, type));
  }
}

TEST(TensorAllgather, TakesADifferentNumberOfRowsFromEachRank) {
  Tensors expected;
  for (int rank = 0; rank < ranks(); ++rank) expected.push_back(rows_of(rank));
  expect_equal(allgather(world(), rows_of(me())), torch::cat(expected));
  expect_equal(allgather_async(world(), rows_of(me()).t().contiguous().t()).wait(), torch::cat(expected));
}

TEST(TensorAllgather, TakesScalarsAsOneRow) {
  expect_equal(allgather(world(), test::tensor(me(), torch::kInt64)), test::arange(ranks(), torch::kInt64));
}

TEST(TensorAllgather, TakesEveryTypeAndNothing) {
  for (const torch::ScalarType type : all_types) {
    expect_equal(allgather(world(), test::ones({2, 3}, type)), test::ones({2 * ranks(), 3}, type));
    expect_equal(allgather(world(), test::ones({0, 3}, type)), test::ones({0, 3}, type));
    expect_equal(allgather(world(), test::ones({2, 0}, type)), test::ones({2 * ranks(), 0}, type));
  }
}

TEST(TensorAllgather, GroupsTensors) {
  const Tensors all = grouped_allgather(world(), {rows_of(me()), test::tensor(me(), torch::kInt64)});
  expect_equal(all[0], allgather(world(), rows_of(me())));
  expect_equal(all[1], test::arange(ranks(), torch::kInt64));
  EXPECT_TRUE(grouped_allgather(world(), {}).empty());
}

TEST(TensorGather, BringsAllRowsToTheRoot) {
  const torch::Tensor all = allgather(world(), rows_of(me()));
  for (int root = 0; root < ranks(); ++root) {
    expect_equal(gather(world(), rows_of(me()), {.root = root}), me() == root ? all : test::empty({0, 2}));
  }
}

TEST(TensorAlltoall, SplitsEvenlyByDefault) {
  const torch::Tensor mine = counting({ranks(), 2}, 100 * me());
  const auto [tensor, splits] = alltoall(world(), mine);
  Tensors expected;
  for (int rank = 0; rank < ranks(); ++rank) expected.push_back(counting({ranks(), 2}, 100 * rank)[me()]);
  expect_equal(tensor, torch::stack(expected));
  EXPECT_EQ(splits, Splits(static_cast<std::size_t>(ranks()), 1));
  EXPECT_EQ(alltoall(world(), test::zeros({ranks() + 1})).tensor.size(0), me() == 0 ? 2 * ranks() : ranks());
}

TEST(TensorAlltoall, SplitsUnevenly) {
  // Rank r sends r + to rows of value 10 · r + to.
  Splits splits;
  Tensors sent;
  Splits expected_splits;
  Tensors expected;
  for (int other = 0; other < ranks(); ++other) {
    splits.push_back(me() + other);
    sent.push_back(test::full({me() + other, 2}, 10 * me() + other));
    expected_splits.push_back(me() + other);
    expected.push_back(test::full({me() + other, 2}, 10 * other + me()));
  }
  const Received received = alltoall(world(), torch::cat(sent), splits);
  expect_equal(received.tensor, torch::cat(expected));
  EXPECT_EQ(received.splits, expected_splits);
  Pending<Received> pending = alltoall_async(world(), torch::cat(sent).t().contiguous().t(), splits);
  expect_equal(pending.wait().tensor, torch::cat(expected));
}

TEST(TensorAlltoall, TakesEveryTypeAndNothing) {
  for (const torch::ScalarType type : all_types) {
    expect_equal(alltoall(world(), test::ones({2 * ranks()}, type)).tensor, test::ones({2 * ranks()}, type));
    expect_equal(alltoall(world(), test::ones({0, 3}, type)).tensor, test::ones({0, 3}, type));
  }
}

TEST(TensorReduceScatter, GivesTheFirstRanksOneRowMore) {
  for (const int rows : {0, 1, 3, 4, 7}) {
    const torch::Tensor mine = counting({rows, 2}, me());
    const torch::Tensor expected = ((mine - me()) * ranks() + sum_of_ranks()).tensor_split(ranks())[me()];
    expect_equal(reduce_scatter(world(), mine, sum), expected);
    expect_equal(reduce_scatter(world(), mine.t().contiguous().t()), expected / ranks());
    expect_equal(grouped_reduce_scatter(world(), {mine, mine + 1}, sum)[1], expected + ranks());
  }
}

TEST(TensorReduceScatter, TakesSplitsScalarsAndEveryType) {
  Splits splits(static_cast<std::size_t>(ranks()), 0);
  splits.back() = 5;
  expect_equal(reduce_scatter(world(), test::ones({5}), sum, splits),
               test::full({me() == ranks() - 1 ? 5 : 0}, ranks(), torch::kFloat32));
  expect_equal(reduce_scatter(world(), test::ones({}), sum), test::full({me() == 0 ? 1 : 0}, ranks(), torch::kFloat32));
  for (const torch::ScalarType type : all_types) {
    const torch::Tensor part = test::ones({3}, type);
    expect_equal(reduce_scatter(world(), test::ones({3 * ranks()}, type), sum),
                 type == torch::kBool ? part : part * ranks());
  }
}

TEST(TensorErrors, EveryRankHearsThatShapesDiffer) {
  if (ranks() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const bool is_odd_one = me() == ranks() - 1;
  const torch::Tensor turned = is_odd_one ? test::ones({3, 2}) : test::ones({2, 3});
  const auto in_shape = HasSubstr("differ in shape");
  EXPECT_THAT(mismatch_of([&] { allreduce(world(), turned); }), in_shape);
  EXPECT_THAT(mismatch_of([&] { allreduce_(world(), turned); }), in_shape);
  EXPECT_THAT(mismatch_of([&] { allreduce(world(), turned, {.op = ReduceOp::adasum}); }), in_shape);
  EXPECT_THAT(mismatch_of([&] { grouped_allreduce(world(), {turned, turned}); }), in_shape);
  EXPECT_THAT(mismatch_of([&] { broadcast(world(), turned); }), in_shape);
  EXPECT_THAT(mismatch_of([&] {
                reduce_scatter(world(), is_odd_one ? test::ones({8}) : test::ones({8, 1}));
              }),
              in_shape);
  const std::string last = std::to_string(ranks() - 1);
  const auto in_rows = HasSubstr("rank 0 brings f32[2, 3]" + test::place() + ", rank " + last + " brings f32[3, 2]");
  EXPECT_THAT(mismatch_of([&] { allgather(world(), turned); }), in_rows);
  EXPECT_THAT(mismatch_of([&] { grouped_allgather(world(), {test::ones({me()}), turned}); }), in_rows);
  EXPECT_THAT(mismatch_of([&] { gather(world(), turned); }), in_rows);
  EXPECT_THAT(mismatch_of([&] { alltoall(world(), turned); }), in_rows);
  EXPECT_THAT(mismatch_of([&] { allgather(world(), turned.to(is_odd_one ? torch::kInt32 : torch::kInt64)); }),
              HasSubstr("brings i64[2, 3]" + test::place() + ", rank " + last + " brings i32[3, 2]"));
  expect_equal(allreduce(world(), test::ones({2, 3})), test::ones({2, 3}));  // the group still works
}

TEST(TensorErrors, AFailedOperationLeavesTheTensorAlone) {
  if (ranks() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const torch::Tensor tensor = test::ones({me() == 0 ? 2 : 3, 2}).t();
  PendingTensor pending = allreduce_async_(world(), tensor, sum);
  EXPECT_THROW(pending.wait(), MismatchError);
  expect_equal(tensor, torch::ones_like(tensor));
}

TEST(TensorErrors, SayWhatToPassInstead) {
  const auto error_of = [](const torch::Tensor& tensor) {
    return usage_error_of([&] { allreduce_(world(), tensor, sum); });
  };
  EXPECT_THAT(error_of(torch::ones({2}, torch::kComplexFloat)),
              HasSubstr("allreduce_: the tensor has type ComplexFloat, which cannot be communicated: pass "
                        "torch::view_as_real(tensor)"));
  EXPECT_THAT(error_of(test::ones({2}, torch::kInt16)), HasSubstr("has type Short"));
  EXPECT_THAT(error_of(torch::ones({2}, torch::kMeta)), HasSubstr("is on meta: only those on the CPU or a CUDA GPU"));
  EXPECT_THAT(error_of(torch::ones({2}).to_sparse()), HasSubstr("pass tensor.to_dense()"));
  EXPECT_THAT(error_of(torch::Tensor()), HasSubstr("undefined"));
  EXPECT_THAT(error_of(test::ones({1}).expand({3})), HasSubstr("pass tensor.clone()"));
  EXPECT_THAT(error_of(test::ones({2}, torch::requires_grad()) * 2), HasSubstr("pass tensor.detach()"));
  const Splits too_many(static_cast<std::size_t>(ranks()), 2);
  EXPECT_THAT(usage_error_of([&] { alltoall(world(), test::ones({1}), too_many); }),
              HasSubstr("do not fit a tensor of 1 rows"));
  EXPECT_THAT(usage_error_of([] {
                reduce_scatter(world(), test::ones({1}), sum, {1, 0, 0, 0, 0});
              }),
              HasSubstr("the splits [1, 0, 0, 0, 0] do not fit"));
}

}  // namespace
}  // namespace fedrun
