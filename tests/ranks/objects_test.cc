// Objects of every kind, of sizes that differ between ranks, and what happens when one cannot be sent.
#include <fedrun/core/error.h>
#include <fedrun/train/objects.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/rank_test.h"

namespace fedrun {
namespace {

using test::mismatch_error_of;
using test::rank;
using test::ranks;
using test::sum_over;
using test::usage_error_of;
using test::world;
using testing::HasSubstr;

// Rank 0 has none of it, the others more and more; with a zero and a byte above 127 inside.
std::string text_of(int rank) {
  std::string text;
  for (int i = 0; i < rank * 1000; ++i) text += std::string("a\0\xFF", 3);
  return text;
}

// Is this what every rank makes of `object(rank)`?
template <typename Make>
void expect_exchanged(Make object) {
  for (int root = 0; root < ranks(); ++root) {
    EXPECT_EQ(broadcast_object(world(), object(rank()), {.root = root}), object(root));
  }
  const auto all = allgather_object(world(), object(rank()));
  ASSERT_EQ(all.size(), static_cast<std::size_t>(ranks()));
  for (int from = 0; from < ranks(); ++from) EXPECT_EQ(all[static_cast<std::size_t>(from)], object(from));
}

torch::Tensor tensor_of(int rank) { return torch::arange(rank * 3, torch::kInt64).reshape({rank, 3}) + rank; }

void expect_same(const torch::Tensor& actual, const torch::Tensor& expected) {
  EXPECT_EQ(actual.scalar_type(), expected.scalar_type());
  EXPECT_EQ(actual.sizes(), expected.sizes());
  EXPECT_TRUE(torch::equal(actual, expected)) << actual << "\ninstead of\n" << expected;
}

TEST(Objects, Text) {
  expect_exchanged(text_of);
  EXPECT_EQ(broadcast_object(world(), rank() == 0 ? "literal" : "another"), "literal");
  EXPECT_EQ(allgather_object(world(), "same").back(), "same");
}

TEST(Objects, Numbers) {
  expect_exchanged([](int rank) { return rank + 0.25; });
  expect_exchanged([](int rank) { return static_cast<std::uint16_t>(65535 - rank); });
  expect_exchanged([](int rank) { return rank % 2 == 0; });
}

TEST(Objects, VectorsOfNumbers) {
  expect_exchanged([](int rank) { return std::vector<double>(static_cast<std::size_t>(rank * 7), rank + 0.5); });
  expect_exchanged([](int rank) { return std::vector<std::uint32_t>(static_cast<std::size_t>(3 - rank % 2), 7); });
  expect_exchanged([](int rank) { return std::vector<bool>(static_cast<std::size_t>(9 + rank), rank % 2 == 0); });
}

TEST(Objects, TensorsOfAnyTypeAndStrides) {
  for (const auto type : {torch::kFloat64, torch::kBFloat16, torch::kBool, torch::kInt16, torch::kComplexFloat}) {
    expect_same(broadcast_object(world(), torch::full({rank(), 2}, 1 + rank(), type), {.root = ranks() - 1}),
                torch::full({ranks() - 1, 2}, ranks(), type));
  }
  const torch::Tensor all = torch::arange(12).reshape({3, 4});
  expect_same(broadcast_object(world(), all.t()), all.t());
  expect_same(broadcast_object(world(), all.slice(1, 0, 4, 2)), all.slice(1, 0, 4, 2));
  expect_same(broadcast_object(world(), torch::tensor(2.5)), torch::tensor(2.5));
}

TEST(Objects, TheResultIsACopy) {
  const torch::Tensor mine = torch::zeros({2});
  broadcast_object(world(), mine).fill_(1);
  allgather_object(world(), mine)[static_cast<std::size_t>(rank())].fill_(1);
  expect_same(mine, torch::zeros({2}));
}

TEST(Objects, ListsOfTensors) {
  const std::vector<torch::Tensor> mine(static_cast<std::size_t>(rank() + 1), tensor_of(rank()));
  const auto all = allgather_object(world(), mine);
  for (int from = 0; from < ranks(); ++from) {
    const std::vector<torch::Tensor>& theirs = all[static_cast<std::size_t>(from)];
    ASSERT_EQ(theirs.size(), static_cast<std::size_t>(from + 1));
    for (const torch::Tensor& tensor : theirs) expect_same(tensor, tensor_of(from));
  }
  EXPECT_TRUE(broadcast_object(world(), std::vector<torch::Tensor>()).empty());
}

TEST(Objects, DictsAndTuples) {
  c10::Dict<std::string, torch::Tensor> mine;
  mine.insert("of rank " + std::to_string(rank()), tensor_of(rank()));
  for (int root = 0; root < ranks(); ++root) {
    const auto theirs = broadcast_object(world(), mine, {.root = root});
    ASSERT_EQ(theirs.size(), 1);
    expect_same(theirs.at("of rank " + std::to_string(root)), tensor_of(root));
  }
  expect_exchanged([](int rank) { return std::make_tuple(std::int64_t{rank}, 0.5 * rank, std::string("x")); });
}

TEST(Objects, IValuesThatAreDifferentThings) {
  const torch::IValue mine = rank() == 0
                                 ? torch::IValue(c10::ivalue::Tuple::create({torch::IValue(), 7, "text", tensor_of(2)}))
                                 : torch::IValue(rank() * 1.5);
  const auto all = allgather_object(world(), mine);
  const auto& tuple = all[0].toTupleRef().elements();
  EXPECT_TRUE(tuple[0].isNone());
  EXPECT_EQ(tuple[1].toInt(), 7);
  EXPECT_EQ(tuple[2].toStringRef(), "text");
  expect_same(tuple[3].toTensor(), tensor_of(2));
  for (int from = 1; from < ranks(); ++from) {
    EXPECT_EQ(all[static_cast<std::size_t>(from)].toDouble(), from * 1.5);
  }
}

TEST(Objects, HaveNames) {
  EXPECT_EQ(broadcast_object(world(), text_of(rank()), {.root = ranks() - 1, .name = "words"}), text_of(ranks() - 1));
  EXPECT_EQ(allgather_object(world(), rank(), {.name = "numbers"}).back(), ranks() - 1);
}

TEST(Objects, TravelInGroups) {
  Communicator half = world().split({.color = rank() % 2});
  const auto members = allgather_object(half, "rank " + std::to_string(rank()));
  ASSERT_EQ(members.size(), static_cast<std::size_t>(half.size()));
  for (int i = 0; i < half.size(); ++i) {
    EXPECT_EQ(members[static_cast<std::size_t>(i)], "rank " + std::to_string(2 * i + rank() % 2));
  }
}

TEST(Objects, OneThatCannotBePickledIsAnErrorOnEveryRank) {
  const auto future = c10::make_intrusive<c10::ivalue::Future>(c10::NoneType::get());
  const int last = ranks() - 1;
  const torch::IValue mine = rank() == last ? torch::IValue(future) : torch::IValue(1);
  EXPECT_THAT(usage_error_of([&] { allgather_object(world(), mine); }),
              HasSubstr("allgather_object: rank " + std::to_string(last) + " failed: Torch cannot pickle"));
  EXPECT_THAT(usage_error_of([&] { broadcast_object(world(), mine, {.root = last}); }),
              HasSubstr("broadcast_object: rank " + std::to_string(last) + " failed: Torch cannot pickle"));
  if (last > 0) {
    EXPECT_EQ(broadcast_object(world(), mine, {.root = 0}).toInt(), 1) << "only the root pickles";
  }
  EXPECT_EQ(sum_over(world(), 1), ranks()) << "the group works afterwards";
}

TEST(Objects, DifferentTypesAreAnErrorOnEveryRank) {
  if (ranks() == 1) GTEST_SKIP() << "one rank cannot disagree";
  EXPECT_THAT(mismatch_error_of([&] {
                rank() == 0 ? (void)broadcast_object(world(), std::string("1")) : (void)broadcast_object(world(), 1.0);
              }),
              HasSubstr("rank 0 has broadcast_object of std::string from root 0, rank 1 has broadcast_object of double "
                        "from root 0"));
  EXPECT_THAT(mismatch_error_of([&] { broadcast_object(world(), 1, {.root = rank() == 0 ? 0 : 1}); }),
              HasSubstr("from root 0, rank 1 has broadcast_object of int from root 1"));
  EXPECT_THAT(
      mismatch_error_of([&] { rank() == 0 ? (void)broadcast_object(world(), 1) : (void)allgather_object(world(), 1); }),
      HasSubstr("rank 0 has broadcast_object of int from root 0, rank 1 has allgather_object of int"));
  EXPECT_EQ(sum_over(world(), 1), ranks());
}

TEST(Objects, RootsThatAreNoRank) {
  EXPECT_THAT(usage_error_of([&] { broadcast_object(world(), 1, {.root = ranks()}); }),
              HasSubstr("there is no rank " + std::to_string(ranks()) + " to be the root"));
  EXPECT_THAT(usage_error_of([&] { broadcast_object(world(), 1, {.root = -1}); }), HasSubstr("there is no rank -1"));
}

}  // namespace
}  // namespace fedrun
