// What a reduction must give, one element at a time and without any trick.
#pragma once

#include <fedrun/collectives/element_dispatch.h>
#include <fedrun/collectives/types.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace fedrun {

struct PlainScale {
  std::vector<double> weights{};
  double factor = 1;
  double divisor = 1;
};

template <typename Wide>
Wide plain_combine(ReduceOp op, Wide a, Wide b) {
  if constexpr (std::is_same_v<Wide, bool>) {
    return op == ReduceOp::min || op == ReduceOp::product ? (a && b) : (a || b);
  } else if constexpr (std::is_integral_v<Wide>) {
    const auto left = static_cast<std::uint64_t>(a);
    const auto right = static_cast<std::uint64_t>(b);
    if (op == ReduceOp::min) return b < a ? b : a;
    if (op == ReduceOp::max) return b > a ? b : a;
    return static_cast<Wide>(op == ReduceOp::product ? left * right : left + right);
  } else {
    if (op == ReduceOp::min || op == ReduceOp::max) {
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<Wide>::quiet_NaN();
      return (op == ReduceOp::min ? b < a : b > a) ? b : a;
    }
    return op == ReduceOp::product ? a * b : a + b;
  }
}

// Rounds, or truncates into the range of an integer.
template <typename T>
T plain_store(double value) {
  if constexpr (std::is_integral_v<T>) {
    if (std::isnan(value)) return 0;
    const double whole = std::trunc(value);
    if (whole <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (whole >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(whole);
  } else {
    return narrow<T>(value);
  }
}

template <typename T, typename Output = T>
Output plain_reduce(std::span<const T> column, ReduceOp op, const PlainScale& scale = {}) {
  if (!scale.weights.empty()) {
    double sum = scale.weights[0] * static_cast<double>(widen(column[0]));
    for (std::size_t k = 1; k < column.size(); ++k) sum += scale.weights[k] * static_cast<double>(widen(column[k]));
    return plain_store<Output>(sum * scale.factor / scale.divisor);
  }
  auto combined = widen(column[0]);
  for (const T next : column.subspan(1)) combined = plain_combine(op, combined, widen(next));
  if (scale.factor == 1 && scale.divisor == 1) return narrow<Output>(combined);
  return plain_store<Output>(static_cast<double>(combined) * scale.factor / scale.divisor);
}

// Bit for bit, except that any NaN equals any other.
template <typename T>
bool same_bits(T a, T b) {
  if constexpr (!std::is_integral_v<T>) {
    if (std::isnan(widen(a)) && std::isnan(widen(b))) return true;
  }
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace fedrun
