// What moves elements without changing them: broadcast, allgather, gather, alltoall; and the barrier.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "support/rank_test.h"
#include "support/rank_values.h"

namespace fedrun {
namespace {

using namespace test;

using Counts = std::vector<std::size_t>;

template <typename T>
class ExchangeOfType : public testing::Test {};
TYPED_TEST_SUITE(ExchangeOfType, AllTypes);

Counts by_rank(const std::function<std::size_t(std::size_t)>& count_of) {
  Counts counts;
  for (int each = 0; each < ranks(); ++each) counts.push_back(count_of(static_cast<std::size_t>(each)));
  return counts;
}

// As many from each; more from each rank; nothing at all; nothing from every second rank; much from the last one only.
std::vector<Counts> layouts() {
  std::vector<Counts> all;
  for (const std::size_t count : awkward_counts) all.push_back(by_rank([&](std::size_t) { return count; }));
  for (const std::size_t unit : {1, 17, 1025, 33'333}) {
    all.push_back(by_rank([&](std::size_t each) { return each * unit; }));
    all.push_back(by_rank([&](std::size_t each) { return each % 2 == 0 ? 0 : unit; }));
  }
  all.push_back(by_rank([](std::size_t each) { return each + 1 == static_cast<std::size_t>(ranks()) ? 20'011 : 0; }));
  return all;
}

TYPED_TEST(ExchangeOfType, BroadcastFromEveryRoot) {
  for (int root = 0; root < ranks(); ++root) {
    for (const std::size_t count : awkward_counts) {
      auto values = elements_of<TypeParam>(rank(), count);
      if (count % 2 == 0) {
        world().broadcast(values, {.root = root});
      } else {
        world().broadcast_async(as_buffer(values), {.root = root})->wait();
      }
      ASSERT_TRUE(are_elements_of(root, std::span<const TypeParam>(values))) << "root " << root;
    }
  }
}

TYPED_TEST(ExchangeOfType, Allgather) {
  for (const Counts& counts : layouts()) {
    const auto mine = elements_of<TypeParam>(rank(), counts[rank_index()]);
    Elements<TypeParam> all(total(counts));
    world().allgather(as_const_buffer(mine), as_buffer(all), counts);
    ASSERT_TRUE(are_parts(std::span<const TypeParam>(all), counts));
  }
}

TYPED_TEST(ExchangeOfType, GatherAtEveryRoot) {
  for (int root = 0; root < ranks(); ++root) {
    for (const Counts& counts : layouts()) {
      const auto mine = elements_of<TypeParam>(rank(), counts[rank_index()]);
      Elements<TypeParam> all(rank() == root ? total(counts) : 0);
      world().gather(as_const_buffer(mine), as_buffer(all), counts, {.root = root});
      if (rank() == root) {
        ASSERT_TRUE(are_parts(std::span<const TypeParam>(all), counts)) << "root " << root;
      }
    }
  }
}

// Rank `from` sends this many to rank `to`: different for every pair, and nothing for some.
std::size_t sent(std::size_t unit, int from, int to) { return static_cast<std::size_t>((2 * from + to) % 5) * unit; }

TYPED_TEST(ExchangeOfType, AlltoallInUnevenSplits) {
  struct Started {
    Counts receive_counts;
    Elements<TypeParam> input;
    Elements<TypeParam> output;
    std::unique_ptr<Work> work{};
  };
  std::vector<std::unique_ptr<Started>> all;
  const std::vector<std::size_t> units = {0, 1, 7, 289, 1025, 20'011};
  for (const std::size_t unit : units) {
    const Counts send_counts = by_rank([&](std::size_t to) { return sent(unit, rank(), static_cast<int>(to)); });
    const Counts receive_counts = by_rank([&](std::size_t from) { return sent(unit, static_cast<int>(from), rank()); });
    all.push_back(std::make_unique<Started>(receive_counts, elements_of<TypeParam>(rank(), total(send_counts)),
                                            Elements<TypeParam>(total(receive_counts))));
    Started& last = *all.back();
    last.work =
        world().alltoall_async(as_const_buffer(last.input), send_counts, as_buffer(last.output), receive_counts);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i]->work->wait();
    const auto first_from = [&](int from) {
      std::size_t first = 0;
      for (int to = 0; to < rank(); ++to) first += sent(units[i], from, to);
      return first;
    };
    ASSERT_TRUE(are_parts(std::span<const TypeParam>(all[i]->output), all[i]->receive_counts, first_from))
        << "unit " << units[i];
  }
}

TYPED_TEST(ExchangeOfType, AlltoallInEqualSplits) {
  for (const std::size_t count : awkward_counts) {
    const Counts counts = by_rank([&](std::size_t) { return count; });
    const auto input = elements_of<TypeParam>(rank(), total(counts));
    Elements<TypeParam> output(total(counts));
    world().alltoall(as_const_buffer(input), counts, as_buffer(output), counts);
    ASSERT_TRUE(are_parts(std::span<const TypeParam>(output), counts, [&](int) { return count * rank_index(); }));
  }
}

TEST(Broadcast, KeepsTheBitsOfNaNsAndZeros) {
  std::array<Bf16, 2> halves = {Bf16{static_cast<std::uint16_t>(rank() == 0 ? 0x7FC1 : 0)},
                                Bf16{static_cast<std::uint16_t>(rank() == 0 ? 0x8000 : 0)}};
  world().broadcast(halves);
  EXPECT_EQ(halves[0].bits, 0x7FC1);
  EXPECT_EQ(halves[1].bits, 0x8000);
}

TEST(Allgather, TellsTheCountsFirst) {
  // Rank r brings r elements of value r, so rank 0 brings none.
  const auto all = world().allgather(std::vector<float>(rank_index(), static_cast<float>(rank())));
  ASSERT_EQ(all.size(), static_cast<std::size_t>(ranks()));
  for (std::size_t from = 0; from < all.size(); ++from) {
    EXPECT_EQ(all[from], std::vector<float>(from, static_cast<float>(from)));
  }
}

TEST(Barrier, HoldsEveryoneUntilTheLastArrives) {
  constexpr auto delay = std::chrono::milliseconds(50);
  for (const bool is_async : {false, true}) {
    world().barrier();
    const auto start = std::chrono::steady_clock::now();
    if (is_last_rank()) std::this_thread::sleep_for(delay);
    is_async ? world().barrier_async({.name = "barrier"})->wait() : world().barrier();
    // The others may have left the first barrier a little later than the last rank, never a whole delay later.
    EXPECT_GE(std::chrono::steady_clock::now() - start, delay / 2);
  }
}

}  // namespace
}  // namespace fedrun
