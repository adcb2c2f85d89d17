// More elements than MPI can count in an int.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/rank_test.h"

namespace fedrun {
namespace {

using test::world;

constexpr std::size_t count = (std::size_t{1} << 31) + 5;

// What the kernel could give without swapping; free memory alone would not count its file cache.
std::size_t available_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  for (std::string name, unit; meminfo >> name;) {
    std::size_t kibibytes = 0;
    meminfo >> kibibytes >> unit;
    if (name == "MemAvailable:") return kibibytes * 1024;
  }
  return 0;
}

// The buffer itself, and what MPI copies of it.
constexpr std::size_t bytes_per_rank = 3 * count;

bool memory_allows() {
  bool enough = available_bytes() > bytes_per_rank * static_cast<std::size_t>(world().size());
  world().allreduce(std::span(&enough, 1), {.op = ReduceOp::min});  // all ranks skip, or none
  return enough;
}

TEST(LargeCounts, Allreduce) {
  if (!memory_allows()) GTEST_SKIP() << "needs " << (bytes_per_rank >> 30) + 1 << " GiB of memory per rank";
  const Memory memory = world().allocate(count);
  const std::span<std::uint8_t> values(static_cast<std::uint8_t*>(memory.data()), count);
  std::ranges::fill(values, static_cast<std::uint8_t>(world().rank() + 1));
  values.back() = 10;
  world().allreduce(values, {.op = ReduceOp::sum});
  const auto expected = static_cast<std::uint8_t>(world().size() * (world().size() + 1) / 2);
  EXPECT_EQ(std::ranges::count(values.first(count - 1), expected), static_cast<std::ptrdiff_t>(count - 1));
  EXPECT_EQ(values.back(), 10 * world().size());
}

TEST(LargeCounts, BroadcastAndAllgather) {
  if (!memory_allows()) GTEST_SKIP() << "needs " << (bytes_per_rank >> 30) + 1 << " GiB of memory per rank";
  // Uneven parts whose total has more elements than an int: the last rank brings most of it.
  const auto ranks = static_cast<std::size_t>(world().size());
  std::vector<std::size_t> counts(ranks, 3);
  counts.back() = count - 3 * (ranks - 1);
  const auto rank = static_cast<std::size_t>(world().rank());
  const auto mine = std::make_unique<std::uint8_t[]>(counts[rank]);
  std::fill_n(mine.get(), counts[rank], static_cast<std::uint8_t>(rank + 1));
  const Memory all = world().allocate(count);
  world().allgather({mine.get(), counts[rank], DataType::u8}, {all.data(), count, DataType::u8}, counts);
  const auto* next = static_cast<const std::uint8_t*>(all.data());
  for (std::size_t from = 0; from < ranks; ++from) {
    const auto same =
        static_cast<std::size_t>(std::count(next, next + counts[from], static_cast<std::uint8_t>(from + 1)));
    EXPECT_EQ(same, counts[from]) << "from rank " << from;
    next += counts[from];
  }
}

}  // namespace
}  // namespace fedrun
