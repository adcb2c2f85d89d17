// Checks that the drawn digits never change silently, are balanced, and depend on their key alone.
#include <fedrun/data/synthetic_digits.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>

namespace fedrun::data {
namespace {

using testing::ElementsAre;

// FNV-1a.
std::uint64_t hash(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const std::uint8_t byte : bytes) value = (value ^ byte) * 0x100000001b3;
  return value;
}

std::span<const std::uint8_t> image(const ImageSet& set, size_t i) {
  return std::span(set.pixels).subspan(i * set.image_bytes(), set.image_bytes());
}

TEST(SyntheticDigits, SayWhatTheyAre) {
  const ImageSet set = synthetic_digits({.count = 20});
  EXPECT_EQ(set.name, "synthetic digits");
  EXPECT_TRUE(set.synthetic);
  EXPECT_EQ(set.count(), 20u);
  EXPECT_EQ(set.channels, 1u);
  EXPECT_EQ(set.rows, 28u);
  EXPECT_EQ(set.columns, 28u);
  EXPECT_EQ(set.classes, 10u);
  EXPECT_EQ(set.pixels.size(), 20u * 28 * 28);
}

// Accuracies in the documentation hold for exactly these images. They are equal on every machine, whatever the
// compiler.
TEST(SyntheticDigits, NeverChangeSilently) {
  const ImageSet set = synthetic_digits({.count = 1000, .seed = 1});
  EXPECT_EQ(hash(set.pixels), 0x37abd2282cb89a8fu);
  EXPECT_EQ(hash(set.labels), 0xe9dd67bc6129db3du);
  EXPECT_THAT(std::vector(set.labels.begin(), set.labels.begin() + 10), ElementsAre(5, 2, 1, 0, 7, 9, 4, 6, 3, 8));
}

TEST(SyntheticDigits, EveryRunOfTenHoldsEachDigitOnce) {
  const ImageSet set = synthetic_digits({.count = 500, .seed = 3});
  std::set<std::vector<std::uint8_t>> orders;
  for (auto run = set.labels.begin(); run != set.labels.end(); run += 10) {
    std::vector<std::uint8_t> digits(run, run + 10);
    orders.insert(digits);
    std::sort(digits.begin(), digits.end());
    EXPECT_THAT(digits, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  }
  EXPECT_EQ(orders.size(), 50u) << "the order within the runs should vary";
}

TEST(SyntheticDigits, AnImageDoesNotDependOnTheCount) {
  const ImageSet large = synthetic_digits({.count = 100, .seed = 5});
  for (const size_t count : {0, 1, 7, 23}) {
    const ImageSet small = synthetic_digits({.count = count, .seed = 5});
    ASSERT_EQ(small.count(), count);
    EXPECT_TRUE(std::equal(small.labels.begin(), small.labels.end(), large.labels.begin()));
    EXPECT_TRUE(std::equal(small.pixels.begin(), small.pixels.end(), large.pixels.begin()));
  }
}

TEST(SyntheticDigits, NoTwoImagesAreEqual) {
  std::set<std::uint64_t> hashes;
  for (const std::uint64_t seed : {0, 1, 2}) {
    const ImageSet set = synthetic_digits({.count = 1000, .seed = seed});
    for (size_t i = 0; i < set.count(); ++i) hashes.insert(hash(image(set, i)));
  }
  EXPECT_EQ(hashes.size(), 3000u);
}

// What every writer of digits agrees on: a zero is empty in the middle, where an eight crosses; nothing runs off the
// sheet.
TEST(SyntheticDigits, LookLikeDigits) {
  const ImageSet set = synthetic_digits({.count = 2000, .seed = 9});
  std::array<double, 10> middle{};
  double border = 0;
  for (size_t i = 0; i < set.count(); ++i) {
    const auto pixels = image(set, i);
    EXPECT_GT(*std::max_element(pixels.begin(), pixels.end()), 100) << "image " << i << " has no ink";
    middle[set.labels[i]] +=
        (pixels[13 * 28 + 13] + pixels[13 * 28 + 14] + pixels[14 * 28 + 13] + pixels[14 * 28 + 14]) / 4.0 / 200;
    for (size_t column = 0; column < 28; ++column) border += (pixels[column] + pixels[27 * 28 + column]) / 56.0 / 2000;
  }
  EXPECT_LT(middle[0], 40);
  EXPECT_GT(middle[8], 80);
  EXPECT_GT(middle[1], 80);
  EXPECT_LT(border, 10);
}

}  // namespace
}  // namespace fedrun::data
