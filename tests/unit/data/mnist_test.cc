// Checks which files load_mnist accepts as one set, and what it tells a user who lacks some.
#include <fedrun/data/mnist.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "idx_files.h"
#include "support/error_text.h"

namespace fedrun::data {
namespace {

using test::usage_error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Mnist : public testing::Test {
 protected:
  std::string error_of(MnistSplit split) const {
    return usage_error_of([&] { load_mnist(directory_.path(), split); });
  }

  TemporaryDirectory directory_;
};

TEST_F(Mnist, ReadsASplitWhole) {
  const Bytes images = idx_images(3);
  directory_.write("train-images-idx3-ubyte", images);
  directory_.write("train-labels-idx1-ubyte", idx_labels({5, 0, 9}));
  const ImageSet set = load_mnist(directory_.path(), MnistSplit::train);
  EXPECT_EQ(set.name, "MNIST");
  EXPECT_FALSE(set.synthetic);
  EXPECT_EQ(set.count(), 3u);
  EXPECT_EQ(set.channels, 1u);
  EXPECT_EQ(set.rows, 28u);
  EXPECT_EQ(set.columns, 28u);
  EXPECT_EQ(set.classes, 10u);
  EXPECT_THAT(set.labels, ElementsAre(5, 0, 9));
  EXPECT_EQ(set.pixels, Bytes(images.begin() + 16, images.end()));
}

TEST_F(Mnist, TheSplitsAreDifferentFiles) {
  directory_.write("train-images-idx3-ubyte.gz", gzip(idx_images(2)));
  directory_.write("train-labels-idx1-ubyte.gz", gzip(idx_labels({1, 2})));
  directory_.write("t10k-images-idx3-ubyte.gz", gzip(idx_images(1)));
  directory_.write("t10k-labels-idx1-ubyte.gz", gzip(idx_labels({3})));
  EXPECT_THAT(load_mnist(directory_.path(), MnistSplit::train).labels, ElementsAre(1, 2));
  EXPECT_THAT(load_mnist(directory_.path(), MnistSplit::test).labels, ElementsAre(3));
}

TEST_F(Mnist, TakesNamesWithADot) {
  directory_.write("t10k-images.idx3-ubyte", idx_images(1));
  directory_.write("t10k-labels.idx1-ubyte.gz", gzip(idx_labels({4})));
  EXPECT_THAT(load_mnist(directory_.path(), MnistSplit::test).labels, ElementsAre(4));
}

TEST_F(Mnist, MissingDirectory) {
  const auto nowhere = directory_.path() / "nowhere";
  EXPECT_THAT(usage_error_of([&] { load_mnist(nowhere, MnistSplit::train); }),
              AllOf(HasSubstr("there is no MNIST in " + nowhere.string() + ": no such directory"),
                    HasSubstr("train-images-idx3-ubyte: missing"), HasSubstr("train-labels-idx1-ubyte: missing"),
                    HasSubstr("t10k-images-idx3-ubyte: missing"), HasSubstr("t10k-labels-idx1-ubyte: missing"),
                    HasSubstr("scripts/get_mnist.sh " + nowhere.string())));
}

TEST_F(Mnist, MissingFilesAreToldFromThoseFound) {
  directory_.write("train-images-idx3-ubyte.gz", gzip(idx_images(1)));
  EXPECT_THAT(
      error_of(MnistSplit::train),
      AllOf(HasSubstr("MNIST is not complete in " + directory_.path().string()), Not(HasSubstr("no such directory")),
            HasSubstr("train-images-idx3-ubyte: found"), HasSubstr("train-labels-idx1-ubyte: missing"),
            HasSubstr("t10k-images-idx3-ubyte: missing"), HasSubstr("scripts/get_mnist.sh")));
}

TEST_F(Mnist, CountsThatDiffer) {
  directory_.write("train-images-idx3-ubyte", idx_images(3));
  directory_.write("train-labels-idx1-ubyte", idx_labels({1, 2}));
  EXPECT_THAT(error_of(MnistSplit::train),
              AllOf(HasSubstr("train-images-idx3-ubyte holds 3 images"),
                    HasSubstr("train-labels-idx1-ubyte holds 2 labels"), HasSubstr("not of one set")));
}

TEST_F(Mnist, LabelBeyondNine) {
  directory_.write("train-images-idx3-ubyte", idx_images(3));
  directory_.write("train-labels-idx1-ubyte", idx_labels({1, 9, 10}));
  EXPECT_THAT(error_of(MnistSplit::train),
              AllOf(HasSubstr("train-labels-idx1-ubyte"), HasSubstr("label 10 (of image 2)"), HasSubstr("0 to 9")));
}

TEST_F(Mnist, ImagesOfAnotherSize) {
  directory_.write("train-images-idx3-ubyte", idx_images(1, 32, 28));
  directory_.write("train-labels-idx1-ubyte", idx_labels({1}));
  EXPECT_THAT(error_of(MnistSplit::train),
              AllOf(HasSubstr("train-images-idx3-ubyte"), HasSubstr("32 × 28 pixels"), HasSubstr("28 × 28")));
}

TEST_F(Mnist, ErrorsOfASingleFileNameIt) {
  directory_.write("train-images-idx3-ubyte", idx_labels({1}));
  directory_.write("train-labels-idx1-ubyte", idx_labels({1}));
  EXPECT_THAT(error_of(MnistSplit::train),
              AllOf(HasSubstr("train-images-idx3-ubyte"), HasSubstr("0x00000801: idx labels")));
}

}  // namespace
}  // namespace fedrun::data
