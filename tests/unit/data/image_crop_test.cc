// Cuts squares out of images whose pixels say where they come from.
#include <fedrun/data/image_crop.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "support/error_text.h"

namespace fedrun::data {
namespace {

using test::usage_error_of;
using testing::ElementsAre;
using testing::HasSubstr;

// The pixel in row r and column c of channel k is 100 k + 10 r + c.
ImageSet numbered(std::size_t count, std::size_t channels, std::size_t side) {
  ImageSet set{.name = "Numbers", .channels = channels, .rows = side, .columns = side, .classes = 1};
  for (std::size_t image = 0; image < count; ++image) {
    for (std::size_t channel = 0; channel < channels; ++channel) {
      for (std::size_t i = 0; i < side * side; ++i) {
        set.pixels.push_back(static_cast<std::uint8_t>(100 * channel + 10 * (i / side) + i % side));
      }
    }
    set.labels.push_back(0);
  }
  return set;
}

TEST(ImageCrop, TakesTheMiddle) {
  const ImageSet set = crop_images(numbered(2, 2, 4), {.side = 2});
  EXPECT_EQ(set.rows, 2u);
  EXPECT_EQ(set.columns, 2u);
  EXPECT_EQ(set.name, "Numbers");
  EXPECT_THAT(set.labels, ElementsAre(0, 0));
  EXPECT_THAT(set.pixels, ElementsAre(11, 12, 21, 22, 111, 112, 121, 122, 11, 12, 21, 22, 111, 112, 121, 122));
  EXPECT_EQ(crop_images(numbered(1, 1, 4), {.side = 4}).pixels, numbered(1, 1, 4).pixels);
  EXPECT_THAT(crop_images(numbered(1, 1, 4), {.side = 1}).pixels, ElementsAre(11));
}

TEST(ImageCrop, TakesEveryPlaceAndBothDirectionsAtRandom) {
  const std::size_t count = 400;
  const ImageSet set = crop_images(numbered(count + 1, 1, 4), {.side = 2, .random_count = count, .seed = 3});
  std::set<std::tuple<int, int, bool>> seen;
  for (std::size_t image = 0; image < count; ++image) {
    const int first = set.pixels[4 * image];
    const int second = set.pixels[4 * image + 1];
    const bool is_mirrored = second < first;
    EXPECT_EQ(second - first, is_mirrored ? -1 : 1);
    EXPECT_EQ(set.pixels[4 * image + 2], first + 10);
    EXPECT_EQ(set.pixels[4 * image + 3], second + 10);
    seen.emplace(first / 10, std::min(first, second) % 10, is_mirrored);
  }
  EXPECT_EQ(seen.size(), 3u * 3 * 2);
  EXPECT_EQ(set.pixels[4 * count], 11) << "the one after them is from the middle";
}

TEST(ImageCrop, DependsOnTheSeedAndTheImageOnly) {
  const ImageCropOptions options{.side = 2, .random_count = 50, .seed = 3};
  const ImageSet fifty = crop_images(numbered(50, 1, 4), options);
  const ImageSet ten = crop_images(numbered(10, 1, 4), options);
  EXPECT_TRUE(std::equal(ten.pixels.begin(), ten.pixels.end(), fifty.pixels.begin()));
  EXPECT_NE(crop_images(numbered(50, 1, 4), {.side = 2, .random_count = 50, .seed = 4}).pixels, fifty.pixels);
}

TEST(ImageCrop, ImagesThatAreTooSmall) {
  EXPECT_THAT(usage_error_of([] { crop_images(numbered(1, 1, 4), {.side = 5}); }),
              HasSubstr("Numbers: squares of 5 pixels cannot be cut out of images of 4 × 4"));
}

}  // namespace
}  // namespace fedrun::data
