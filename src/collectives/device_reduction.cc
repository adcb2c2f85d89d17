#include <fedrun/collectives/device_reduction.h>
#include <fedrun/collectives/element_dispatch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fedrun {
namespace {

// Wide enough to add what has been multiplied by weights.
DataType wide_type(DataType type) {
  const bool is_short_float = is_float(type) && type != DataType::f64;
  return is_short_float ? DataType::f32 : DataType::f64;
}

// With an exponent that even an f16 has.
bool is_small_power_of_two(double value) {
  int exponent = 0;
  const double fraction = std::frexp(std::abs(value), &exponent);
  return fraction == 0.5 && std::abs(exponent) <= 14;
}

// True bytes are 1, so or is max and and is min.
ReduceOp op_of_bytes(ReduceOp op) {
  return op == ReduceOp::min || op == ReduceOp::product ? ReduceOp::min : ReduceOp::max;
}

template <typename T>
T neutral_element(ReduceOp op) {
  if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, Bf16>) {
    return narrow<T>(neutral_element<float>(op));
  } else {
    using Limits = std::numeric_limits<T>;
    if (op == ReduceOp::product) return T{1};
    if (op == ReduceOp::min) return Limits::has_infinity ? Limits::infinity() : Limits::max();
    if (op == ReduceOp::max) return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    return T{0};
  }
}

}  // namespace

bool is_float(DataType type) {
  return type == DataType::f16 || type == DataType::bf16 || type == DataType::f32 || type == DataType::f64;
}

DeviceReduction plan_device_reduction(const DeviceTerms& terms, int rank, int ranks) {
  const ReducePlan& plan = terms.plan;
  DeviceReduction reduction{.type = terms.type, .op = plan.op == ReduceOp::average ? ReduceOp::sum : plan.op};
  const auto own = std::ranges::find(plan.sources, rank);
  reduction.is_empty = plan.sources.empty();
  reduction.takes_part = own != plan.sources.end();
  reduction.uses_scratch = plan.sources.size() < static_cast<std::size_t>(ranks);
  if (terms.type == DataType::boolean) {
    reduction.type = DataType::u8;
    reduction.op = op_of_bytes(plan.op);
    return reduction;
  }
  const auto weight_of = [&](std::size_t source) { return plan.weights.empty() ? 1.0 : plan.weights[source]; };
  const double own_weight = reduction.takes_part ? weight_of(static_cast<std::size_t>(own - plan.sources.begin())) : 1;
  const double after = plan.postscale / plan.divisor;
  const bool is_sum = reduction.op == ReduceOp::sum;
  if (terms.wire && ranks > 1) {
    reduction.type = *terms.wire;
    // All of it before, because a half overflows soon.
    (is_sum ? reduction.before : reduction.factor) = is_sum ? own_weight * after : plan.postscale;
    return reduction;
  }
  bool are_powers = is_sum && is_float(terms.type);
  bool are_ones = plan.weights.empty() && after == 1;
  for (std::size_t source = 0; are_powers && source < plan.sources.size(); ++source) {
    are_powers = is_small_power_of_two(weight_of(source) * after);
  }
  if (are_powers && !are_ones) {
    reduction.multiplier = own_weight * after;
    return reduction;
  }
  if (!plan.weights.empty()) {
    reduction.type = wide_type(terms.type);
    reduction.uses_scratch = true;  // one weight of many may be 1
  }
  reduction.before = own_weight;
  reduction.factor = plan.postscale;
  reduction.divisor = plan.divisor;
  return reduction;
}

std::uint64_t neutral_bits(ReduceOp op, DataType type) {
  std::uint64_t bits = 0;
  dispatch_element_type(type, [&](auto* pointer) {
    using T = std::remove_pointer_t<decltype(pointer)>;
    const T element = neutral_element<T>(op);
    std::memcpy(&bits, &element, sizeof element);  // the lowest bytes come first on every machine that has these GPUs
  });
  return bits;
}

}  // namespace fedrun
