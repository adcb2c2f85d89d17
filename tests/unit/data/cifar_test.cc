// Reads CIFAR files made here in the true format, damaged ones too, and the real ones where they are at hand.
#include <fedrun/core/run_env.h>
#include <fedrun/data/cifar.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "idx_files.h"
#include "support/error_text.h"

namespace fedrun::data {
namespace {

using test::usage_error_of;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// An image whose pixels count up from `first`.
Bytes image(const Bytes& labels, std::uint8_t first) {
  Bytes record = labels;
  for (int i = 0; i < 3 * 32 * 32; ++i) record.push_back(static_cast<std::uint8_t>(first + i));
  return record;
}

class Cifar : public testing::Test {
 protected:
  void write_cifar10() const {
    for (std::uint8_t batch = 1; batch <= 5; ++batch) {
      directory_.write("data_batch_" + std::to_string(batch) + ".bin", image({batch}, batch));
    }
    directory_.write("test_batch.bin.gz", gzip(image({9}, 1) + image({0}, 2)));
  }
  std::string error_of(CifarKind kind) const {
    return usage_error_of([&] { load_cifar(directory_.path(), kind, CifarSplit::train); });
  }

  TemporaryDirectory directory_;
};

TEST_F(Cifar, ReadsTheFiveBatchesInOrder) {
  write_cifar10();
  const ImageSet set = load_cifar(directory_.path(), CifarKind::cifar10, CifarSplit::train);
  EXPECT_EQ(set.name, "CIFAR-10");
  EXPECT_EQ(set.classes, 10u);
  EXPECT_EQ(set.channels, 3u);
  EXPECT_THAT(set.labels, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(set.pixels.size(), 5 * set.image_bytes());
  EXPECT_EQ(set.pixels[0], 1);
  EXPECT_EQ(set.pixels[4 * set.image_bytes()], 5);
}

TEST_F(Cifar, ReadsTheTestSetFromGzip) {
  write_cifar10();
  const ImageSet set = load_cifar(directory_.path(), CifarKind::cifar10, CifarSplit::test);
  EXPECT_THAT(set.labels, ElementsAre(9, 0));
}

TEST_F(Cifar, TakesTheFineLabelOfCifar100) {
  directory_.write("train.bin", image({19, 99}, 1) + image({3, 0}, 7));
  directory_.write("test.bin", image({1, 42}, 1));
  const ImageSet set = load_cifar(directory_.path(), CifarKind::cifar100, CifarSplit::train);
  EXPECT_EQ(set.classes, 100u);
  EXPECT_THAT(set.labels, ElementsAre(99, 0));
  EXPECT_EQ(set.pixels[0], 1);
  EXPECT_EQ(set.pixels[3072], 7);
  EXPECT_THAT(load_cifar(directory_.path(), CifarKind::cifar100, CifarSplit::test).labels, ElementsAre(42));
}

TEST_F(Cifar, SaysWhatIsMissing) {
  directory_.write("data_batch_1.bin", image({1}, 1));
  EXPECT_THAT(error_of(CifarKind::cifar10),
              AllOf(HasSubstr("CIFAR-10 is not complete in " + directory_.path().string()),
                    HasSubstr("data_batch_1.bin: found"), HasSubstr("data_batch_5.bin: missing"),
                    HasSubstr("test_batch.bin: missing"), HasSubstr("cifar-10-binary.tar.gz")));
  EXPECT_THAT(error_of(CifarKind::cifar100), AllOf(HasSubstr("train.bin: missing"), HasSubstr("cifar-100-binary")));
}

TEST_F(Cifar, NoticesDamage) {
  write_cifar10();
  directory_.write("data_batch_2.bin", image({1}, 1) + Bytes{2, 0, 0});
  EXPECT_THAT(error_of(CifarKind::cifar10),
              AllOf(HasSubstr("data_batch_2.bin ends in the middle of image 1"), HasSubstr("3 of its 3073 bytes")));
  directory_.write("data_batch_2.bin", {});
  EXPECT_THAT(error_of(CifarKind::cifar10), HasSubstr("data_batch_2.bin ends in the middle of image 0, after 0 of"));
  directory_.write("data_batch_2.bin", image({10}, 1));
  EXPECT_THAT(error_of(CifarKind::cifar10), HasSubstr("the label 10 (of image 0), where CIFAR-10 has 0 to 9"));
  Bytes packed = gzip(image({1}, 1));
  packed.erase(packed.end() - 8, packed.end());
  std::filesystem::remove(directory_.path() / "data_batch_2.bin");
  directory_.write("data_batch_2.bin.gz", packed);
  EXPECT_THAT(error_of(CifarKind::cifar10), HasSubstr("data_batch_2.bin.gz ends in the middle of image 1"));
}

TEST(RealCifar, FirstBatchAndTestImages) {
  const std::string test_data = RunEnv::from_environment().test_data;
  const auto directory = (test_data.empty() ? std::filesystem::path(FEDRUN_SOURCE_DIR) / ".." / "shared" / "data"
                                            : std::filesystem::path(test_data)) /
                         "cifar10";
  if (!std::filesystem::is_directory(directory)) {
    GTEST_SKIP() << "no CIFAR-10 in " << directory << ": set FEDRUN_TEST_DATA to a directory that holds cifar10/";
  }
  ImageSet train = empty_cifar_set(CifarKind::cifar10);
  append_cifar_file(directory / "data_batch_1.bin.gz", CifarKind::cifar10, train);
  std::array<int, 10> counts{};
  for (const std::uint8_t label : train.labels) ++counts[label];
  EXPECT_THAT(counts, ElementsAre(1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981));
  ImageSet test = empty_cifar_set(CifarKind::cifar10);
  append_cifar_file(directory / "test_batch.bin.gz", CifarKind::cifar10, test);
  EXPECT_EQ(test.count(), 1000u);
}

}  // namespace
}  // namespace fedrun::data
