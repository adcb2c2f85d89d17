// Values that every rank can work out for every other, and what reductions make of them: exact in every type.
#pragma once

#include <fedrun/collectives/element_dispatch.h>
#include <fedrun/collectives/types.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace fedrun::test {

// Around the sizes at which something changes: vectors, the board (4 KiB), chunks; powers of 17; and one of many
// chunks.
inline constexpr std::array<std::size_t, 11> awkward_counts = {0, 1, 7, 17, 289, 1023, 1024, 1025, 4097, 4913, 100'003};
inline constexpr std::array reduce_ops = {ReduceOp::average, ReduceOp::sum, ReduceOp::min, ReduceOp::max,
                                          ReduceOp::product};

using NumberTypes = testing::Types<std::uint8_t, std::int8_t, std::int32_t, std::int64_t, F16, Bf16, float, double>;
using AllTypes = testing::Types<std::uint8_t, std::int8_t, std::int32_t, std::int64_t, F16, Bf16, float, double, bool>;

// A vector, but of bool, too: vector<bool> has no elements to point at.
template <typename T>
class Elements {
 public:
  explicit Elements(std::size_t count) : count_(count), data_(std::make_unique<T[]>(count)) {}
  T* begin() { return data_.get(); }
  T* end() { return begin() + count_; }
  const T* begin() const { return data_.get(); }
  const T* end() const { return begin() + count_; }
  std::size_t size() const { return count_; }

 private:
  std::size_t count_;
  std::unique_ptr<T[]> data_;
};

// 1, 2 or 3, so that even a product over four ranks fits an i8.
inline constexpr std::size_t value_period = 3;
inline int small_value(int rank, std::size_t index) {
  return 1 + static_cast<int>((static_cast<std::size_t>(rank) + index) % value_period);
}

template <typename T>
T element(int rank, std::size_t index) {
  if constexpr (std::is_same_v<T, bool>) {
    return small_value(rank, index) == 1;
  } else {
    return narrow<T>(small_value(rank, index));
  }
}

// What `rank` brings where it brings elements first, first + 1, ….
template <typename T>
Elements<T> elements_of(int rank, std::size_t count, std::size_t first = 0) {
  Elements<T> elements(count);
  for (std::size_t i = 0; i < count; ++i) elements.begin()[i] = element<T>(rank, first + i);
  return elements;
}

template <typename T>
bool same_bytes(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Are these the elements first, first + 1, … of a sequence? `expected` tells any of them, and repeats after
// value_period.
template <typename T, typename Expected>
testing::AssertionResult match(std::span<const T> elements, Expected expected, std::size_t first = 0) {
  std::array<T, value_period> sequence{};
  for (std::size_t i = 0; i < value_period; ++i) sequence[i] = expected(first + i);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (same_bytes(elements[i], sequence[i % value_period])) continue;
    return testing::AssertionFailure() << "element " << i << " of " << elements.size() << " is " << +widen(elements[i])
                                       << ", not " << +widen(sequence[i % value_period]);
  }
  return testing::AssertionSuccess();
}
template <typename T, typename Expected>
testing::AssertionResult match(const Elements<T>& elements, Expected expected, std::size_t first = 0) {
  return match(std::span<const T>(elements), expected, first);
}
template <typename T>
testing::AssertionResult are_elements_of(int rank, std::span<const T> elements, std::size_t first = 0) {
  return match(
      elements, [&](std::size_t index) { return element<T>(rank, index); }, first);
}

// Do the ranks' parts lie one after the other, each as its rank brings it from `first_from(rank)` on?
template <typename T, typename FirstFrom>
testing::AssertionResult are_parts(std::span<const T> all, const std::vector<std::size_t>& counts,
                                   FirstFrom first_from) {
  std::size_t first = 0;
  for (int from = 0; from < static_cast<int>(counts.size()); ++from) {
    const std::size_t count = counts[static_cast<std::size_t>(from)];
    auto result = are_elements_of(from, all.subspan(first, count), first_from(from));
    if (!result) return result << " from rank " << from;
    first += count;
  }
  return testing::AssertionSuccess();
}
template <typename T>
testing::AssertionResult are_parts(std::span<const T> all, const std::vector<std::size_t>& counts) {
  return are_parts(all, counts, [](int) { return std::size_t{0}; });
}

inline double combine(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    case ReduceOp::product:
      return a * b;
    default:
      return a + b;
  }
}

// The reduction of what these ranks bring at this index.
template <typename T>
T reduced(ReduceOp op, const std::vector<int>& ranks, std::size_t index) {
  double result = static_cast<double>(widen(element<T>(ranks.front(), index)));
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    result = combine(op, result, static_cast<double>(widen(element<T>(ranks[i], index))));
  }
  if (op == ReduceOp::average) result /= static_cast<double>(ranks.size());
  if constexpr (std::is_same_v<T, bool>) {
    return result != 0;
  } else {
    return narrow<T>(result);
  }
}

inline std::vector<int> first_ranks(int count) {
  std::vector<int> ranks;
  for (int rank = 0; rank < count; ++rank) ranks.push_back(rank);
  return ranks;
}

// Booleans have no average.
template <typename T>
bool has(ReduceOp op) {
  return !(std::is_same_v<T, bool> && op == ReduceOp::average);
}

inline std::size_t total(const std::vector<std::size_t>& counts) {
  std::size_t sum = 0;
  for (const std::size_t count : counts) sum += count;
  return sum;
}

}  // namespace fedrun::test
