// Several operations submitted at once.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/rank_test.h"
#include "support/rank_values.h"

namespace fedrun {
namespace {

using namespace test;

const std::vector<std::size_t> member_counts = {3, 100'003, 0, 1025, 1, 20'011};

float sum_at(std::size_t index) { return reduced<float>(ReduceOp::sum, first_ranks(ranks()), index); }

std::vector<Elements<float>> members() {
  std::vector<Elements<float>> all;
  for (const std::size_t count : member_counts) all.push_back(elements_of<float>(rank(), count));
  return all;
}

TEST(Grouped, AllreduceOfDifferentTypesAndSizes) {
  for (const char* name : {"", "grouped"}) {
    auto floats = members();
    auto integers = elements_of<std::int64_t>(rank(), 4097);
    std::vector<Buffer> buffers = {as_buffer(integers)};
    for (auto& each : floats) buffers.push_back(as_buffer(each));
    world().grouped_allreduce(buffers, {.op = ReduceOp::sum, .name = name});
    for (const auto& each : floats) EXPECT_TRUE(match(each, sum_at));
    EXPECT_TRUE(match(integers, [](std::size_t i) { return static_cast<std::int64_t>(sum_at(i)); }));
  }
}

TEST(Grouped, OfNothingIsDone) {
  const auto work = world().grouped_allreduce_async({});
  EXPECT_TRUE(work->done());
  work->wait();
  world().grouped_allgather({});
  world().grouped_reduce_scatter({});
}

TEST(Grouped, Allgather) {
  const auto mine = members();
  std::vector<Elements<float>> all;
  std::vector<Communicator::Gathered> parts;
  for (const auto& each : mine) {
    const std::vector<std::size_t> counts(static_cast<std::size_t>(ranks()), each.size());
    all.emplace_back(total(counts));
    parts.push_back({as_const_buffer(each), as_buffer(all.back()), counts});
  }
  world().grouped_allgather(parts, {.name = "gathered"});
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (int from = 0; from < ranks(); ++from) {
      const std::span<const float> part(all[i].begin() + mine[i].size() * static_cast<std::size_t>(from),
                                        mine[i].size());
      EXPECT_TRUE(are_elements_of(from, part)) << "member " << i << " from rank " << from;
    }
  }
}

TEST(Grouped, ReduceScatterInEqualAndGivenParts) {
  const auto inputs = members();
  std::vector<Elements<float>> outputs;
  std::vector<std::size_t> firsts;
  std::vector<Communicator::Scattered> parts;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto equal = world().equal_parts(inputs[i].size());
    std::vector<std::size_t> given(equal.rbegin(), equal.rend());
    if (i % 2 == 0) given.clear();
    const auto& counts = given.empty() ? equal : given;
    outputs.emplace_back(counts[rank_index()]);
    firsts.push_back(total({counts.begin(), counts.begin() + rank()}));
    parts.push_back({as_const_buffer(inputs[i]), as_buffer(outputs.back()), given});
  }
  const auto work = world().grouped_reduce_scatter_async(parts, {.op = ReduceOp::sum});
  work->wait();
  EXPECT_TRUE(work->done());
  for (std::size_t i = 0; i < outputs.size(); ++i) EXPECT_TRUE(match(outputs[i], sum_at, firsts[i])) << "member " << i;
}

TEST(Grouped, SeveralGroupsUnderWayInDifferentOrders) {
  auto first = elements_of<float>(rank(), 20'011);
  auto second = elements_of<float>(rank(), 17);
  const std::vector<Buffer> first_buffers = {as_buffer(first)};
  const std::vector<Buffer> second_buffers = {as_buffer(second)};
  std::vector<std::unique_ptr<Work>> works;
  for (int i = 0; i < 2; ++i) {
    const bool is_first = (rank() + i) % 2 == 0;
    works.push_back(world().grouped_allreduce_async(is_first ? first_buffers : second_buffers,
                                                    {.op = ReduceOp::sum, .name = is_first ? "first" : "second"}));
  }
  for (const auto& work : works) work->wait();
  EXPECT_TRUE(match(first, sum_at));
  EXPECT_TRUE(match(second, sum_at));
}

}  // namespace
}  // namespace fedrun
