// Combines n buffers into m in one pass over memory: the loops that reduce() is made of, and what they need to know.
#pragma once

#include <fedrun/collectives/types.h>

#include <cstddef>
#include <span>

namespace fedrun {

// How a combined float is scaled before it is stored: not at all, by a factor in the type that it was combined in, or
// by a factor and a divisor in f64.
enum class Scaling { none, narrow, wide };

// Elements [first, first + count) of each input go to [output_first, output_first + count) of each output.
struct CombineTerms {
  std::span<const void* const> inputs{};
  std::size_t first = 0;
  std::span<void* const> outputs{};
  std::size_t output_first = 0;
  std::size_t count = 0;
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
  const double* weights = nullptr;  // of a sum of floats; nullptr: all 1
  Scaling scaling = Scaling::none;  // of floats
  double factor = 1;
  double divisor = 1;
};

// Stores the type of the inputs.
void combine(const CombineTerms& terms);

// Stores f32 from inputs that are f32, f16 or bf16.
void combine_into_f32(const CombineTerms& terms);

}  // namespace fedrun
