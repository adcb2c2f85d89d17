// Lets all ranks of a randomized test draw the same numbers, and a person repeat a run that failed.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include "support/rank_test.h"

namespace fedrun::test {

using Random = std::mt19937;

// What --gtest_random_seed says, or else the time; the same on every rank.
inline std::uint32_t shared_seed() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const std::int32_t given = testing::GTEST_FLAG(random_seed);
  std::array<std::int32_t, 1> seed = {given != 0 ? given : static_cast<std::int32_t>(now / 1000 % 99'999 + 1)};
  world().broadcast(seed);
  if (rank() == 0) fmt::print("repeat with --gtest_random_seed={}\n", seed[0]);
  return static_cast<std::uint32_t>(seed[0]);
}

inline std::vector<std::size_t> shuffled(std::size_t count, Random& random) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  std::ranges::shuffle(order, random);
  return order;
}

}  // namespace fedrun::test
