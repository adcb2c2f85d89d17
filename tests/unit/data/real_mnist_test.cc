// Reads the real MNIST files where they are at hand: our own test files could share a mistake with the reader.
#include <fedrun/core/run_env.h>
#include <fedrun/data/mnist.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <filesystem>

namespace fedrun::data {
namespace {

using testing::ElementsAre;

std::filesystem::path mnist_directory() {
  const std::string test_data = RunEnv::from_environment().test_data;
  const auto data = test_data.empty() ? std::filesystem::path(FEDRUN_SOURCE_DIR) / ".." / "shared" / "data"
                                      : std::filesystem::path(test_data);
  return data / "mnist";
}

class RealMnist : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::is_directory(mnist_directory())) {
      GTEST_SKIP() << "no MNIST in " << mnist_directory() << ": set FEDRUN_TEST_DATA to a directory that holds mnist/";
    }
  }
};

std::array<int, 10> histogram(const ImageSet& set) {
  std::array<int, 10> counts{};
  for (const std::uint8_t label : set.labels) ++counts[label];
  return counts;
}

unsigned long checksum(const std::vector<std::uint8_t>& bytes) {
  return crc32(0, bytes.data(), static_cast<unsigned>(bytes.size()));
}

TEST_F(RealMnist, TrainingSet) {
  const ImageSet set = load_mnist(mnist_directory(), MnistSplit::train);
  EXPECT_EQ(set.count(), 60000u);
  EXPECT_EQ(set.pixels.size(), 60000u * 28 * 28);
  EXPECT_THAT(histogram(set), ElementsAre(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949));
  EXPECT_EQ(checksum(set.pixels), 0xf3639b56u);
  EXPECT_EQ(checksum(set.labels), 0xba07e8efu);
}

TEST_F(RealMnist, TestSet) {
  const ImageSet set = load_mnist(mnist_directory(), MnistSplit::test);
  EXPECT_EQ(set.count(), 10000u);
  EXPECT_EQ(set.pixels.size(), 10000u * 28 * 28);
  EXPECT_THAT(histogram(set), ElementsAre(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009));
  EXPECT_EQ(checksum(set.pixels), 0xe4ca5f57u);
  EXPECT_EQ(checksum(set.labels), 0xee8604d9u);
}

}  // namespace
}  // namespace fedrun::data
