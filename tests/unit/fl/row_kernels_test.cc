#include <fedrun/fl/row_kernels.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fedrun::fl {
namespace {

constexpr std::size_t sizes[] = {1, 2, 3, 5, 7, 10, 12};
constexpr std::size_t widths[] = {1, 3, 8, 15, 16, 17, 61, 784};

// Small eighths, whose products add up exactly.
std::vector<float> eighths(std::size_t count, std::size_t step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = (static_cast<float>(i * step % 17) - 8) / 8;
  return values;
}

TEST(RowKernels, MultiplyRows) {
  for (const std::size_t rows : sizes) {
    for (const std::size_t classes : sizes) {
      for (const std::size_t width : widths) {
        const std::vector<float> inputs = eighths(rows * width, 7);
        const std::vector<float> weights = eighths(classes * width, 5);
        std::vector<float> expected;
        for (std::size_t r = 0; r < rows; ++r) {
          for (std::size_t c = 0; c < classes; ++c) {
            float sum = 0;
            for (std::size_t i = 0; i < width; ++i) sum += inputs[r * width + i] * weights[c * width + i];
            expected.push_back(sum);
          }
        }
        std::vector<float> scores(rows * classes, -1);
        multiply_rows({inputs.data(), rows, width}, {weights.data(), classes, width}, scores.data());
        EXPECT_EQ(scores, expected) << rows << " rows, " << classes << " classes, width " << width;
      }
    }
  }
}

TEST(RowKernels, AddProducts) {
  for (const std::size_t rows : sizes) {
    for (const std::size_t classes : sizes) {
      for (const std::size_t width : widths) {
        const std::vector<float> inputs = eighths(rows * width, 7);
        const std::vector<float> errors = eighths(rows * classes, 5);
        std::vector<float> weights = eighths(classes * width, 3);
        std::vector<float> expected = weights;
        for (std::size_t c = 0; c < classes; ++c) {
          for (std::size_t i = 0; i < width; ++i) {
            float sum = 0;
            for (std::size_t r = 0; r < rows; ++r) sum += errors[r * classes + c] * inputs[r * width + i];
            expected[c * width + i] -= 0.5F * sum;
          }
        }
        add_products({errors.data(), rows, classes}, {inputs.data(), rows, width}, -0.5F, weights.data());
        EXPECT_EQ(weights, expected) << rows << " rows, " << classes << " classes, width " << width;
      }
    }
  }
}

TEST(RowKernels, ScalePixels) {
  for (const std::size_t width : widths) {
    std::vector<std::uint8_t> pixels(width);
    for (std::size_t i = 0; i < width; ++i) pixels[i] = static_cast<std::uint8_t>(255 - 3 * i);
    const std::vector<float> scale = eighths(width, 3);
    const std::vector<float> shift = eighths(width, 5);
    std::vector<float> values(width);
    scale_pixels(pixels.data(), width, scale.data(), shift.data(), values.data());
    for (std::size_t i = 0; i < width; ++i) {
      EXPECT_EQ(values[i], static_cast<float>(pixels[i]) * scale[i] + shift[i]) << i << " of " << width;
    }
  }
}

TEST(RowKernels, AddScaled) {
  for (const std::size_t width : widths) {
    const std::vector<float> values = eighths(width, 3);
    std::vector<float> sums = eighths(width, 5);
    std::vector<float> expected = sums;
    for (std::size_t i = 0; i < width; ++i) expected[i] += 0.5F * values[i];
    add_scaled(values.data(), width, 0.5F, sums.data());
    EXPECT_EQ(sums, expected);
  }
}

TEST(RowKernels, LargestMagnitude) {
  EXPECT_EQ(largest_magnitude(nullptr, 0), 0);
  for (const std::size_t width : widths) {
    for (const std::size_t place : {std::size_t{0}, width / 2, width - 1}) {
      std::vector<float> values(width, 0.5F);
      values[place] = -3;
      EXPECT_EQ(largest_magnitude(values.data(), width), 3) << place << " of " << width;
      for (const float bad : {INFINITY, -INFINITY, std::nanf("")}) {
        values[place] = bad;
        EXPECT_TRUE(std::isnan(largest_magnitude(values.data(), width))) << bad << " at " << place << " of " << width;
      }
    }
  }
}

}  // namespace
}  // namespace fedrun::fl
