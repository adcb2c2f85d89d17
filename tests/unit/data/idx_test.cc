// Checks that good idx files are read exactly and that each kind of bad file is told apart in words.
#include <fedrun/data/idx.h>
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
using testing::IsEmpty;

class Idx : public testing::Test {
 protected:
  std::string error_of(const Bytes& bytes, IdxContent content = IdxContent::images) const {
    const auto file = directory_.write("file", bytes);
    return usage_error_of([&] { read_idx(file, content); });
  }

  TemporaryDirectory directory_;
};

TEST_F(Idx, ReadsImages) {
  const Bytes bytes = idx_header(0x803, {2, 2, 3}) + Bytes{1, 2, 3, 4, 5, 6, 255, 254, 253, 252, 251, 250};
  const IdxArray images = read_idx(directory_.write("images", bytes), IdxContent::images);
  EXPECT_THAT(images.dimensions, ElementsAre(2, 2, 3));
  EXPECT_THAT(images.values, ElementsAre(1, 2, 3, 4, 5, 6, 255, 254, 253, 252, 251, 250));
}

TEST_F(Idx, ReadsLabels) {
  const IdxArray labels = read_idx(directory_.write("labels", idx_labels({7, 0, 9})), IdxContent::labels);
  EXPECT_THAT(labels.dimensions, ElementsAre(3));
  EXPECT_THAT(labels.values, ElementsAre(7, 0, 9));
}

TEST_F(Idx, TheContentSaysWhetherItIsGzip) {
  const Bytes plain = idx_images(5);
  const IdxArray expected = read_idx(directory_.write("plain", plain), IdxContent::images);
  EXPECT_EQ(expected.values, Bytes(plain.begin() + 16, plain.end()));
  EXPECT_EQ(read_idx(directory_.write("packed", gzip(plain)), IdxContent::images).values, expected.values);
  EXPECT_EQ(read_idx(directory_.write("plain.gz", plain), IdxContent::images).values, expected.values);
}

// The array grows in steps, first to 64 KiB and then by doubling: sizes around the first two, and one of several.
TEST_F(Idx, ReadsMoreThanOneStep) {
  for (const std::uint32_t count : {65535u, 65536u, 65537u, 131071u, 131072u, 131073u, 3000000u}) {
    Bytes values(count);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * i >> 7);
    const Bytes plain = idx_labels(values);
    EXPECT_EQ(read_idx(directory_.write("plain", plain), IdxContent::labels).values, values) << count;
    EXPECT_EQ(read_idx(directory_.write("packed", gzip(plain)), IdxContent::labels).values, values) << count;
  }
}

TEST_F(Idx, AnEmptyArrayIsValid) {
  const IdxArray images = read_idx(directory_.write("none", idx_images(0)), IdxContent::images);
  EXPECT_THAT(images.dimensions, ElementsAre(0, 28, 28));
  EXPECT_THAT(images.values, IsEmpty());
}

TEST_F(Idx, MissingFile) {
  const auto file = directory_.path() / "nowhere";
  EXPECT_THAT(usage_error_of([&] { read_idx(file, IdxContent::images); }),
              AllOf(HasSubstr(file.string()), HasSubstr("No such file")));
}

TEST_F(Idx, DirectoryInPlaceOfAFile) {
  EXPECT_THAT(usage_error_of([&] { read_idx(directory_.path(), IdxContent::images); }),
              AllOf(HasSubstr(directory_.path().string()), HasSubstr("is a directory")));
}

TEST_F(Idx, LabelsWhereImagesAreExpected) {
  EXPECT_THAT(error_of(idx_labels({1, 2})),
              AllOf(HasSubstr((directory_.path() / "file").string()), HasSubstr("idx images (magic number 0x00000803)"),
                    HasSubstr("starts with 0x00000801: idx labels")));
  EXPECT_THAT(error_of(idx_images(1), IdxContent::labels),
              AllOf(HasSubstr("idx labels (magic number 0x00000801)"), HasSubstr("0x00000803: idx images")));
}

TEST_F(Idx, OtherMagicNumbers) {
  EXPECT_THAT(error_of({'<', '!', 'D', 'O', 'C'}), HasSubstr("starts with 0x3c21444f: not an idx file"));
  EXPECT_THAT(error_of(idx_header(0x804, {1, 1, 1, 1})), HasSubstr("an idx array of 4 dimensions"));
  EXPECT_THAT(error_of(idx_header(0xd03, {1, 1, 1})), HasSubstr("an idx array of elements that are not bytes"));
}

TEST_F(Idx, TruncatedHeader) {
  EXPECT_THAT(error_of({}), HasSubstr("truncated: its header alone has 16 bytes, but it ends after 0"));
  EXPECT_THAT(error_of({0, 0, 8}), HasSubstr("truncated: its header alone has 16 bytes, but it ends after 3"));
  EXPECT_THAT(error_of(idx_header(0x803, {2, 28})), HasSubstr("its header alone has 16 bytes, but it ends after 12"));
  EXPECT_THAT(error_of({0, 0, 8, 1, 0}, IdxContent::labels), HasSubstr("its header alone has 8 bytes"));
}

TEST_F(Idx, TruncatedData) {
  Bytes bytes = idx_images(3);
  bytes.resize(bytes.size() - 5);
  EXPECT_THAT(error_of(bytes), HasSubstr("truncated: its header announces 2368 bytes, but it ends after 2363:"));
  EXPECT_THAT(error_of(gzip(bytes)), HasSubstr("truncated: its header announces 2368 bytes, but it ends after 2363:"));
}

TEST_F(Idx, TruncatedGzip) {
  Bytes packed = gzip(idx_images(3));
  packed.resize(packed.size() / 2);
  EXPECT_THAT(error_of(packed), AllOf(HasSubstr("truncated: its header announces 2368 bytes"), HasSubstr("unpacked")));
}

TEST_F(Idx, GzipWithoutItsChecksum) {
  for (const size_t missing : {1, 4, 8}) {
    Bytes packed = gzip(idx_images(3));
    packed.resize(packed.size() - missing);
    EXPECT_THAT(error_of(packed), HasSubstr("truncated: its gzip checksum is missing")) << missing;
  }
}

TEST_F(Idx, DamagedGzip) {
  Bytes wrong_checksum = gzip(idx_images(3));
  wrong_checksum[wrong_checksum.size() - 8] ^= 1;
  EXPECT_THAT(error_of(wrong_checksum),
              AllOf(HasSubstr("damaged gzip data in " + (directory_.path() / "file").string()),
                    HasSubstr("incorrect data check")));
  Bytes wrong_method = gzip(idx_images(3));
  wrong_method[2] = 9;
  EXPECT_THAT(error_of(wrong_method), HasSubstr("damaged gzip data"));
}

TEST_F(Idx, TrailingBytes) {
  const Bytes longer = idx_images(3) + Bytes{0};
  EXPECT_THAT(error_of(longer), HasSubstr("goes on after the 2368 bytes that its header announces"));
  EXPECT_THAT(error_of(gzip(longer)), HasSubstr("goes on after the 2368 bytes that its header announces"));
}

// Would need up to 2^96 bytes if the header were believed.
TEST_F(Idx, HeadersThatLieAreNotBelieved) {
  constexpr std::uint32_t most = 0xffffffff;
  EXPECT_THAT(error_of(idx_header(0x803, {most, most, most})),
              HasSubstr("4294967295 × 4294967295 × 4294967295 bytes, more than any file can hold"));
  EXPECT_THAT(error_of(idx_header(0x803, {most, 0x7fff, 0x7fff}) + Bytes{1, 2, 3}),
              HasSubstr("announces 4611404546671968271 bytes, but it ends after 19"));
  EXPECT_THAT(error_of(gzip(idx_header(0x801, {most}) + Bytes{1, 2}), IdxContent::labels),
              HasSubstr("announces 4294967303 bytes, but it ends after 10"));
  EXPECT_THAT(error_of(idx_header(0x803, {most, 0, most}) + Bytes{1}), HasSubstr("goes on after the 16 bytes"));
}

}  // namespace
}  // namespace fedrun::data
