// The arithmetic of every reduction: combines n buffers element by element and stores the result into m, in one pass.
#pragma once

#include <fedrun/collectives/types.h>

#include <cstddef>
#include <optional>
#include <span>

namespace fedrun {

// One result element is
//
//     inputs[0][i] ∘ inputs[1][i] ∘ …   combined from left to right, · factor / divisor
//
// so it depends on nothing but its inputs: not on the position, the length, the alignment or the SIMD target (except
// which of several NaNs survives).
//
//  - u8, i8, i32, i64 wrap around. bool has sum = max = or and min = product = and.
//  - f32 and f64 combine in their own type, f16 and bf16 in f32; only the store rounds to 16 bits.
//  - min and max of numbers and a NaN are NaN. Of zeros with different signs the first wins.
//  - factor and divisor work in f64 on the combined value before it is stored, with the same bits as if it had been
//    stored, scaled and stored again. Integers are truncated towards zero and stay inside their range.
//  - With weights, Σ wᵢ·xᵢ is calculated in f64 for all types; only the store rounds or truncates. Weights that
//    are all 1 count as none. An input of weight 0 is best left out, because 0 times infinity is NaN.
struct ReduceTerms {
  std::span<const void* const> inputs{};  // in rank order, at least one
  std::span<void* const> outputs{};       // each apart from all inputs, or exactly one of them
  std::size_t count = 0;                  // elements in each of them
  DataType type = DataType::f32;
  // Another one of f32, f16, bf16; or f64 for integers, or an integer for f64. Then outputs lie apart from inputs.
  std::optional<DataType> output_type{};
  ReduceOp op = ReduceOp::sum;        // average adds like sum: the caller knows the divisor
  std::span<const double> weights{};  // one for each input of a sum; empty means that all are 1
  double factor = 1;
  double divisor = 1;  // of an average: the weight that took part
};

// Pointers need only the alignment of their elements. Throws UsageError for terms that make no sense.
void reduce(const ReduceTerms& terms);

}  // namespace fedrun
