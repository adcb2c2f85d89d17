// Draws a data set of handwritten-looking digits, for when there is no data directory: every example runs without a
// download.
#pragma once

#include <fedrun/data/image_set.h>

#include <cstddef>
#include <cstdint>

namespace fedrun::data {

struct SyntheticDigitsOptions {
  size_t count = 10000;
  std::uint64_t seed = 0;  // train and test sets differ by their seeds
};

// Grey images of 28 × 28 with the labels 0 to 9. Image i depends on (seed, i) alone and is bitwise the same on every
// machine, so ranks can draw the set each for itself. Each run of ten images from a multiple of ten holds every digit
// once.
ImageSet synthetic_digits(SyntheticDigitsOptions options = {});

}  // namespace fedrun::data
