#include <fedrun/fl/row_kernels.h>

#include <algorithm>
#include <cmath>

// Targets that differ little from others only cost compile time.
#define HWY_DISABLED_TARGETS HWY_SSSE3
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fedrun/fl/row_kernels.cc"
#include <hwy/foreach_target.h>
// foreach_target.h comes first: it includes this file again for each target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fedrun::fl {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using FloatVector = hn::Vec<Floats>;

// Both kernels work on blocks whose sums stay in registers. With ten sums, a block needs fewer loads than
// multiplications, and the additions of one need not wait for each other.
constexpr std::size_t row_block = 2;
constexpr std::size_t class_block = 5;

// The scores of some rows for some classes.
template <std::size_t rows, std::size_t classes>
HWY_INLINE void multiply_block(const float* inputs, const float* weights, std::size_t columns, float* scores,
                               std::size_t score_stride) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  FloatVector sums[rows][classes];
  for (auto& of_row : sums) {
    for (FloatVector& sum : of_row) sum = hn::Zero(d);
  }
  std::size_t column = 0;
  for (; column + lanes <= columns; column += lanes) {
    FloatVector input[rows];
    for (std::size_t r = 0; r < rows; ++r) input[r] = hn::LoadU(d, inputs + r * columns + column);
    for (std::size_t c = 0; c < classes; ++c) {
      const FloatVector weight = hn::LoadU(d, weights + c * columns + column);
      for (std::size_t r = 0; r < rows; ++r) sums[r][c] = hn::MulAdd(input[r], weight, sums[r][c]);
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < classes; ++c) {
      float sum = hn::GetLane(hn::SumOfLanes(d, sums[r][c]));
      for (std::size_t rest = column; rest < columns; ++rest) {
        sum += inputs[r * columns + rest] * weights[c * columns + rest];
      }
      scores[r * score_stride + c] = sum;
    }
  }
}

template <std::size_t rows>
HWY_INLINE void multiply_some_rows(const float* inputs, const Matrix& weights, float* scores) {
  std::size_t c = 0;
  for (; c + class_block <= weights.rows; c += class_block) {
    multiply_block<rows, class_block>(inputs, weights.values + c * weights.columns, weights.columns, scores + c,
                                      weights.rows);
  }
  for (; c < weights.rows; ++c) {
    multiply_block<rows, 1>(inputs, weights.values + c * weights.columns, weights.columns, scores + c, weights.rows);
  }
}

void multiply_rows_on_this_target(const Matrix& inputs, const Matrix& weights, float* scores) {
  std::size_t r = 0;
  for (; r + row_block <= inputs.rows; r += row_block) {
    multiply_some_rows<row_block>(inputs.values + r * inputs.columns, weights, scores + r * weights.rows);
  }
  for (; r < inputs.rows; ++r) {
    multiply_some_rows<1>(inputs.values + r * inputs.columns, weights, scores + r * weights.rows);
  }
}

// Some vectors' width of columns for some classes, over all rows.
template <class D, std::size_t vectors, std::size_t classes>
HWY_INLINE void add_block(D d, const Matrix& errors, const Matrix& inputs, float rate, float* weights) {
  using V = hn::Vec<D>;
  const std::size_t lanes = hn::Lanes(d);
  V sums[vectors][classes];
  for (auto& of_vector : sums) {
    for (V& sum : of_vector) sum = hn::Zero(d);
  }
  for (std::size_t r = 0; r < inputs.rows; ++r) {
    V input[vectors];
    for (std::size_t v = 0; v < vectors; ++v) {
      input[v] = hn::LoadU(d, inputs.values + r * inputs.columns + v * lanes);
    }
    for (std::size_t c = 0; c < classes; ++c) {
      const V error = hn::Set(d, errors.values[r * errors.columns + c]);
      for (std::size_t v = 0; v < vectors; ++v) sums[v][c] = hn::MulAdd(input[v], error, sums[v][c]);
    }
  }
  const V factor = hn::Set(d, rate);
  for (std::size_t c = 0; c < classes; ++c) {
    for (std::size_t v = 0; v < vectors; ++v) {
      float* place = weights + c * inputs.columns + v * lanes;
      hn::StoreU(hn::MulAdd(sums[v][c], factor, hn::LoadU(d, place)), d, place);
    }
  }
}

template <std::size_t classes>
HWY_INLINE void add_some_classes(const Matrix& errors, Matrix inputs, float rate, float* weights) {
  const Floats d;
  constexpr std::size_t vectors = row_block;
  const std::size_t width = vectors * hn::Lanes(d);
  const float* end = inputs.values + inputs.columns;
  for (; inputs.values + width <= end; inputs.values += width, weights += width) {
    add_block<Floats, vectors, classes>(d, errors, inputs, rate, weights);
  }
  for (; inputs.values < end; ++inputs.values, ++weights) {
    add_block<hn::CappedTag<float, 1>, 1, classes>({}, errors, inputs, rate, weights);
  }
}

void add_products_on_this_target(const Matrix& errors, const Matrix& inputs, float rate, float* weights) {
  Matrix some = errors;
  std::size_t c = 0;
  for (; c + class_block <= errors.columns; c += class_block) {
    add_some_classes<class_block>(some, inputs, rate, weights + c * inputs.columns);
    some.values += class_block;
  }
  for (; c < errors.columns; ++c, ++some.values) add_some_classes<1>(some, inputs, rate, weights + c * inputs.columns);
}

void scale_pixels_on_this_target(const std::uint8_t* pixels, std::size_t count, const float* scale, const float* shift,
                                 float* values) {
  const Floats d;
  const hn::Rebind<std::int32_t, Floats> d32;
  const hn::Rebind<std::uint8_t, Floats> d8;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const FloatVector bytes = hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, pixels + i)));
    hn::StoreU(hn::Add(hn::Mul(bytes, hn::LoadU(d, scale + i)), hn::LoadU(d, shift + i)), d, values + i);
  }
  for (; i < count; ++i) values[i] = static_cast<float>(pixels[i]) * scale[i] + shift[i];
}

void add_scaled_on_this_target(const float* values, std::size_t count, float factor, float* sums) {
  const Floats d;
  const FloatVector factors = hn::Set(d, factor);
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::MulAdd(hn::LoadU(d, values + i), factors, hn::LoadU(d, sums + i)), d, sums + i);
  }
  for (; i < count; ++i) sums[i] += factor * values[i];
}

float largest_magnitude_on_this_target(const float* values, std::size_t count) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  FloatVector largest = hn::Zero(d);
  FloatVector zeros = hn::Zero(d);  // 0 times something infinite is NaN, which stays
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const FloatVector some = hn::LoadU(d, values + i);
    largest = hn::Max(largest, hn::Abs(some));
    zeros = hn::MulAdd(some, hn::Zero(d), zeros);
  }
  float result = hn::GetLane(hn::MaxOfLanes(d, largest));
  float zero = hn::GetLane(hn::SumOfLanes(d, zeros));
  for (; i < count; ++i) {
    result = std::max(result, std::abs(values[i]));
    zero += 0 * values[i];
  }
  return result + zero;
}

}  // namespace HWY_NAMESPACE
}  // namespace fedrun::fl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fedrun::fl {
namespace {

HWY_EXPORT(multiply_rows_on_this_target);
HWY_EXPORT(add_products_on_this_target);
HWY_EXPORT(scale_pixels_on_this_target);
HWY_EXPORT(add_scaled_on_this_target);
HWY_EXPORT(largest_magnitude_on_this_target);

}  // namespace

void multiply_rows(const Matrix& inputs, const Matrix& weights, float* scores) {
  HWY_DYNAMIC_DISPATCH(multiply_rows_on_this_target)(inputs, weights, scores);
}

void add_products(const Matrix& errors, const Matrix& inputs, float rate, float* weights) {
  HWY_DYNAMIC_DISPATCH(add_products_on_this_target)(errors, inputs, rate, weights);
}

void scale_pixels(const std::uint8_t* pixels, std::size_t count, const float* scale, const float* shift,
                  float* values) {
  HWY_DYNAMIC_DISPATCH(scale_pixels_on_this_target)(pixels, count, scale, shift, values);
}

void add_scaled(const float* values, std::size_t count, float factor, float* sums) {
  HWY_DYNAMIC_DISPATCH(add_scaled_on_this_target)(values, count, factor, sums);
}

float largest_magnitude(const float* values, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(largest_magnitude_on_this_target)(values, count);
}

}  // namespace fedrun::fl
#endif  // HWY_ONCE
