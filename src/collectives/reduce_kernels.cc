#include <fedrun/collectives/cast_kernels.h>
#include <fedrun/collectives/combine_kernels.h>
#include <fedrun/collectives/reduce_kernels.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace fedrun {
namespace {

bool combines_in_f32(DataType type) { return type == DataType::f32 || type == DataType::f16 || type == DataType::bf16; }

bool is_scaled(const ReduceTerms& terms) { return terms.factor != 1 || terms.divisor != 1 || !terms.weights.empty(); }

bool is_integer(DataType type) {
  return type == DataType::u8 || type == DataType::i8 || type == DataType::i32 || type == DataType::i64;
}

bool can_be_reduced_to(DataType from, DataType to) {
  return from == to || (combines_in_f32(from) && combines_in_f32(to)) || (is_integer(from) && to == DataType::f64) ||
         (from == DataType::f64 && is_integer(to));
}

void check(const ReduceTerms& terms) {
  if (terms.inputs.empty()) throw UsageError("reduce without inputs: give at least one");
  if (terms.output_type && !can_be_reduced_to(terms.type, *terms.output_type)) {
    throw UsageError(fmt::format(
        "{} cannot be reduced to {}: f32, f16 and bf16 can be reduced to each other, integers to f64 and back",
        to_string(terms.type), to_string(*terms.output_type)));
  }
  if (!terms.weights.empty()) {
    if (terms.weights.size() != terms.inputs.size()) {
      throw UsageError(fmt::format("{} weights for {} inputs: give one for each, or none", terms.weights.size(),
                                   terms.inputs.size()));
    }
    if (terms.op != ReduceOp::sum && terms.op != ReduceOp::average) {
      throw UsageError(fmt::format("op {} has no weights: use sum or average", to_string(terms.op)));
    }
  }
  if (terms.type == DataType::boolean && is_scaled(terms)) {
    throw UsageError("bool elements cannot be scaled: use op min or max");
  }
}

// f32(x / divisor) is f32(x · (1 / divisor)) for every f32 x if the divisor is an integer below 2^26, times any power
// of two: a quotient that is no f32 lies at least 2^-51 (relative) away from the middle between two of them, and both
// ways of calculating it in f64 err by less. A division takes several times as long as a multiplication.
bool may_multiply_by_reciprocal(double divisor) {
  int exponent = 0;
  const double scaled = std::ldexp(std::frexp(divisor, &exponent), 26);
  return scaled == std::trunc(scaled) && std::isfinite(1 / divisor);
}

bool is_f32(double value) { return static_cast<double>(static_cast<float>(value)) == value; }

// A multiplication in place of the division where that changes nothing. A weighted sum in f64 has been rounded by then,
// so one more error of 2^-53 before it is rounded to f32 is no worse.
bool may_multiply(const ReduceTerms& terms) {
  int exponent = 0;
  if (std::frexp(terms.divisor, &exponent) == 0.5) return true;
  if (!combines_in_f32(terms.type)) return false;
  if (!terms.weights.empty()) return std::isfinite(1 / terms.divisor);
  if (terms.factor == terms.divisor) return is_f32(terms.factor);  // the product is exact in f64, and all is taken back
  return terms.factor == 1 && may_multiply_by_reciprocal(terms.divisor);
}

// The same result with less work.
ReduceTerms simplified(ReduceTerms terms) {
  if (std::ranges::all_of(terms.weights, [](double weight) { return weight == 1; })) terms.weights = {};
  if (terms.divisor != 1 && may_multiply(terms)) {
    terms.factor /= terms.divisor;
    terms.divisor = 1;
  }
  return terms;
}

Scaling scaling_of(const ReduceTerms& terms) {
  if (terms.factor == 1 && terms.divisor == 1) return Scaling::none;
  // The product of two f32 is exact in f64, so a factor that is an f32 gives the same result without f64.
  return is_f32(terms.factor) && terms.divisor == 1 ? Scaling::narrow : Scaling::wide;
}

// A block is what is calculated at a time where one pass through the registers is not enough; it stays in L1.
constexpr std::size_t block_elements = 1024;

template <typename T>
using Block = std::array<T, block_elements>;

// Calls use(first element, number of elements) for each block.
template <typename Use>
void for_each_block(std::size_t count, Use use) {
  for (std::size_t first = 0; first < count; first += block_elements) {
    use(first, std::min(block_elements, count - first));
  }
}

template <typename T>
void copy_to_outputs(const Block<T>& block, const ReduceTerms& terms, std::size_t first, std::size_t count) {
  for (void* output : terms.outputs) std::memcpy(static_cast<T*>(output) + first, block.data(), count * sizeof(T));
}

// Σ wᵢ·xᵢ
template <typename T>
void sum_weighted(const ReduceTerms& terms, std::size_t first, std::size_t count, Block<double>& sums) {
  std::fill_n(sums.begin(), count, 0.0);
  for (std::size_t k = 0; k < terms.inputs.size(); ++k) {
    const T* elements = static_cast<const T*>(terms.inputs[k]) + first;
    for (std::size_t i = 0; i < count; ++i) sums[i] += terms.weights[k] * static_cast<double>(elements[i]);
  }
}

// What a conversion to an integer leaves undefined gets a meaning: the nearest value there is, and 0 for NaN.
template <typename T>
T truncate(double value) {
  if constexpr (std::is_same_v<T, double>) return value;
  constexpr auto smallest = static_cast<double>(std::numeric_limits<T>::min());
  // 2^63 - 1 is no f64; the largest below it is.
  constexpr double largest = sizeof(T) == 8 ? 0x1.fffffffffffffp62 : static_cast<double>(std::numeric_limits<T>::max());
  if (value != value) return 0;
  if (value >= largest) return std::numeric_limits<T>::max();
  return static_cast<T>(value < smallest ? smallest : value);
}

template <typename From, typename To>
void scale_and_truncate(const ReduceTerms& terms, const Block<From>& from, std::size_t count, Block<To>& to) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = truncate<To>(static_cast<double>(from[i]) * terms.factor / terms.divisor);
  }
}

// One of the types is an integer, both are or the other is f64.
template <typename From, typename To>
void reduce_in_f64(const ReduceTerms& terms) {
  Block<From> combined;
  Block<double> sums;
  Block<To> block;
  void* const combined_address = combined.data();
  for_each_block(terms.count, [&](std::size_t first, std::size_t count) {
    if (terms.weights.empty()) {
      combine({.inputs = terms.inputs,
               .first = first,
               .outputs = {&combined_address, 1},
               .count = count,
               .type = terms.type,
               .op = terms.op});
      scale_and_truncate(terms, combined, count, block);
    } else {
      sum_weighted<From>(terms, first, count, sums);
      scale_and_truncate(terms, sums, count, block);
    }
    copy_to_outputs(block, terms, first, count);
  });
}

template <typename T>
void reduce_integers_in_f64(const ReduceTerms& terms) {
  if (terms.type == DataType::f64) return reduce_in_f64<double, T>(terms);
  if (terms.output_type == DataType::f64) return reduce_in_f64<T, double>(terms);
  reduce_in_f64<T, T>(terms);
}

void reduce_integers_in_f64(const ReduceTerms& terms, DataType integer) {
  if (integer == DataType::u8) return reduce_integers_in_f64<std::uint8_t>(terms);
  if (integer == DataType::i8) return reduce_integers_in_f64<std::int8_t>(terms);
  if (integer == DataType::i32) return reduce_integers_in_f64<std::int32_t>(terms);
  reduce_integers_in_f64<std::int64_t>(terms);
}

CombineTerms combine_terms(const ReduceTerms& terms) {
  return {.inputs = terms.inputs,
          .outputs = terms.outputs,
          .count = terms.count,
          .type = terms.type,
          .op = terms.op,
          .weights = terms.weights.empty() ? nullptr : terms.weights.data(),
          .scaling = scaling_of(terms),
          .factor = terms.factor,
          .divisor = terms.divisor};
}

void reduce_into_halves(const ReduceTerms& terms, DataType output_type) {
  Block<float> block;
  Block<std::uint16_t> halves;
  void* const block_address = block.data();
  CombineTerms part = combine_terms(terms);
  part.outputs = {&block_address, 1};
  for_each_block(terms.count, [&](std::size_t first, std::size_t count) {
    part.first = first;
    part.count = count;
    combine_into_f32(part);
    cast({block.data(), count, DataType::f32}, {halves.data(), count, output_type});
    copy_to_outputs(halves, terms, first, count);
  });
}

void reduce_simplified(const ReduceTerms& terms) {
  const DataType output_type = terms.output_type.value_or(terms.type);
  const bool converts = output_type != terms.type;
  if (is_integer(output_type) && (converts || is_scaled(terms))) return reduce_integers_in_f64(terms, output_type);
  if (is_integer(terms.type) && converts) return reduce_integers_in_f64(terms, terms.type);
  if (converts && output_type != DataType::f32) return reduce_into_halves(terms, output_type);
  if (converts) return combine_into_f32(combine_terms(terms));
  combine(combine_terms(terms));
}

}  // namespace

void reduce(const ReduceTerms& terms) {
  check(terms);
  reduce_simplified(simplified(terms));
}

}  // namespace fedrun
