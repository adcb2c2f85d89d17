// The inner loops of small models, in vectors: for so little work, a call of a tensor library costs more than the work.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fedrun::fl {

// Row by row, one after the other.
struct Matrix {
  const float* values = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
};

// scores[r · weights.rows + c] = inputs[r] · weights[c]; both have the same columns.
void multiply_rows(const Matrix& inputs, const Matrix& weights, float* scores);

// weights[c] += rate · Σ_r errors[r][c] · inputs[r], where weights has errors.columns rows of inputs.columns.
void add_products(const Matrix& errors, const Matrix& inputs, float rate, float* weights);

// values[i] = pixels[i] · scale[i] + shift[i].
void scale_pixels(const std::uint8_t* pixels, std::size_t count, const float* scale, const float* shift, float* values);

// sums[i] += factor · values[i].
void add_scaled(const float* values, std::size_t count, float factor, float* sums);

// The largest |value|; NaN where a value is NaN or infinite.
float largest_magnitude(const float* values, std::size_t count);

}  // namespace fedrun::fl
