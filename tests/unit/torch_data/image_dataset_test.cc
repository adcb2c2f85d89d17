// Checks the tensors that ImageDataset makes of bytes, value by value.
#include <fedrun/data/image_dataset.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"

namespace fedrun::data {
namespace {

using test::usage_error_of;
using testing::AllOf;
using testing::HasSubstr;

// Three images of two channels of 2 × 3; no two pixels are equal.
ImageSet small_set() {
  ImageSet set{.name = "small", .channels = 2, .rows = 2, .columns = 3, .classes = 10};
  set.labels = {4, 0, 9};
  for (int i = 0; i < 36; ++i) set.pixels.push_back(static_cast<std::uint8_t>(i * 7));
  return set;
}

TEST(ImageDataset, CollatesABatch) {
  ImageDataset dataset(small_set());
  EXPECT_EQ(dataset.size(), 3u);
  const auto batch = dataset.get_batch(std::vector<size_t>{2, 0, 2, 1});
  ASSERT_EQ(batch.data.sizes(), (std::vector<std::int64_t>{4, 2, 2, 3}));
  EXPECT_EQ(batch.data.scalar_type(), torch::kFloat32);
  EXPECT_TRUE(batch.data.is_contiguous());
  EXPECT_EQ(batch.target.scalar_type(), torch::kInt64);
  EXPECT_TRUE(torch::equal(batch.target, torch::tensor({9, 4, 9, 0}, torch::kInt64)));

  const auto values = batch.data.flatten();
  const int order[] = {2, 0, 2, 1};
  for (int i = 0; i < 48; ++i) {
    EXPECT_EQ(values[i].item<float>(), static_cast<float>((order[i / 12] * 12 + i % 12) * 7) / 255.0f) << i;
  }
}

TEST(ImageDataset, ScalesEveryByteExactly) {
  ImageSet set{.name = "all bytes", .rows = 16, .columns = 16, .classes = 1};
  set.labels = {0};
  for (int i = 0; i < 256; ++i) set.pixels.push_back(static_cast<std::uint8_t>(i));
  ImageDataset dataset(set);
  const auto values = dataset.get_batch(std::vector<size_t>{0}).data.flatten();
  for (int i = 0; i < 256; ++i) EXPECT_EQ(values[i].item<float>(), static_cast<float>(i) / 255.0f) << i;
}

TEST(ImageDataset, NormalisesEachChannel) {
  ImageDataset dataset(small_set(), {.mean = {0.5f, 0.25f}, .deviation = {0.5f, 2.0f}});
  const auto image = dataset.get_batch(std::vector<size_t>{1}).data[0];
  for (int i = 0; i < 6; ++i) {
    const float first = static_cast<float>((12 + i) * 7) / 255.0f;
    const float second = static_cast<float>((18 + i) * 7) / 255.0f;
    EXPECT_EQ(image[0].flatten()[i].item<float>(), (first - 0.5f) / 0.5f);
    EXPECT_EQ(image[1].flatten()[i].item<float>(), (second - 0.25f) / 2.0f);
  }
}

TEST(ImageDataset, BatchesDoNotShareMemoryWithTheSet) {
  ImageDataset dataset(small_set());
  const auto batch = dataset.get_batch(std::vector<size_t>{0});
  batch.data.fill_(77);
  batch.target.fill_(77);
  const auto again = dataset.get_batch(std::vector<size_t>{0});
  EXPECT_EQ(again.data.flatten()[1].item<float>(), 7 / 255.0f);
  EXPECT_EQ(again.target.item<std::int64_t>(), 4);
}

TEST(ImageDataset, AnEmptySetIsValid) {
  ImageDataset dataset(ImageSet{.name = "none", .rows = 28, .columns = 28, .classes = 10});
  EXPECT_EQ(dataset.size(), 0u);
  EXPECT_EQ(dataset.get_batch(std::vector<size_t>{}).data.sizes(), (std::vector<std::int64_t>{0, 1, 28, 28}));
}

TEST(ImageDataset, RejectsAnIndexBeyondTheSet) {
  ImageDataset dataset(small_set());
  EXPECT_THAT(usage_error_of([&] {
                dataset.get_batch(std::vector<size_t>{0, 3});
              }),
              AllOf(HasSubstr("image 3"), HasSubstr("has 3")));
  EXPECT_THAT(usage_error_of([&] { dataset.get_batch(std::vector<size_t>{~size_t{0}}); }), HasSubstr("image 184467"));
}

TEST(ImageDataset, RejectsSetsThatContradictThemselves) {
  ImageSet short_of_pixels = small_set();
  short_of_pixels.pixels.pop_back();
  EXPECT_THAT(usage_error_of([&] { ImageDataset dataset(short_of_pixels); }),
              HasSubstr("small: 35 bytes of pixels do not make 3 images of 2 × 2 × 3"));
  ImageSet bad_label = small_set();
  bad_label.classes = 9;
  EXPECT_THAT(usage_error_of([&] { ImageDataset dataset(bad_label); }),
              HasSubstr("image 2 has the label 9, but there are 9 classes"));
}

TEST(ImageDataset, RejectsOptionsThatDoNotFit) {
  EXPECT_THAT(usage_error_of([] { ImageDataset dataset(small_set(), {.mean = {0.5f}}); }),
              HasSubstr("1 values of mean for 2 channels"));
  EXPECT_THAT(usage_error_of([] {
                ImageDataset dataset(small_set(), {.deviation = {1.0f, 0.0f}});
              }),
              HasSubstr("a deviation of 0"));
}

}  // namespace
}  // namespace fedrun::data
