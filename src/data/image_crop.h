// Cuts a smaller square out of each image of a set.
#pragma once

#include <fedrun/data/image_set.h>

#include <cstddef>
#include <cstdint>

namespace fedrun::data {

struct ImageCropOptions {
  std::size_t side = 0;  // of the squares
  // Of so many images, from the first on, the square is anywhere and one in two is mirrored; of the others it is the
  // middle. Which, depends on the seed and the number of the image alone.
  std::size_t random_count = 0;
  std::uint64_t seed = 0;
};

// Throws UsageError when the images are smaller than the square.
ImageSet crop_images(const ImageSet& set, const ImageCropOptions& options);

}  // namespace fedrun::data
