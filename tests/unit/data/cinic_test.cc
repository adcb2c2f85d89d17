// Reads CINIC-10 folders of PNG files made here, of every colour type, and says of bad ones what is wrong with them.
#include <fedrun/data/cinic.h>
#include <fedrun/data/png_image.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <array>
#include <string>

#include "idx_files.h"
#include "support/error_text.h"

namespace fedrun::data {
namespace {

using test::usage_error_of;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::array<const char*, 10> classes = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                 "dog",      "frog",       "horse", "ship", "truck"};

struct PngForm {
  int colour_type = PNG_COLOR_TYPE_RGB;
  int bits = 8;
  int interlace = PNG_INTERLACE_NONE;
  unsigned side = 32;
};

// Every pixel is `pixel`; a palette has one colour, (10, 20, 30), and a gamma of 1 is there to be left alone.
Bytes png(const Bytes& pixel, const PngForm& form = {}) {
  Bytes bytes;
  png_structp file = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(file);
  const auto write = [](png_structp to, png_bytep from, std::size_t count) {
    auto& all = *static_cast<Bytes*>(png_get_io_ptr(to));
    all.insert(all.end(), from, from + count);
  };
  png_set_write_fn(file, &bytes, write, nullptr);
  png_set_IHDR(file, info, form.side, form.side, form.bits, form.colour_type, form.interlace,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  const png_color colour = {10, 20, 30};
  if (form.colour_type == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(file, info, &colour, 1);
  png_set_gAMA(file, info, 1.0);
  png_write_info(file, info);
  Bytes row;
  while (row.size() < form.side * pixel.size()) row.insert(row.end(), pixel.begin(), pixel.end());
  std::vector<png_bytep> rows(form.side, row.data());
  png_write_image(file, rows.data());
  png_write_end(file, nullptr);
  png_destroy_write_struct(&file, &info);
  return bytes;
}

class Cinic : public testing::Test {
 protected:
  // One image for each class, whose red is the number of the class.
  void write_split(const std::string& split) const {
    for (std::uint8_t label = 0; label < classes.size(); ++label) write(split, label, "b.png", png({label, 100, 200}));
  }
  void write(const std::string& split, std::size_t label, const std::string& name, const Bytes& bytes) const {
    const std::string folder = split + "/" + classes[label] + "/";
    std::filesystem::create_directories(directory_.path() / folder);
    directory_.write(folder + name, bytes);
  }
  ImageSet load(CinicSplit split) const { return load_cinic10(directory_.path(), split); }
  std::string error_of(CinicSplit split) const {
    return usage_error_of([&] { load(split); });
  }

  TemporaryDirectory directory_;
};

TEST_F(Cinic, TakesClassesInTheOrderOfTheAlphabetAndFilesByName) {
  write_split("train");
  write_split("test");
  write("train", 3, "c.png", png({33, 0, 0}));
  write("train", 3, "a.png", png({32, 0, 0}));
  write("train", 3, "notes.txt", {1, 2, 3});
  const ImageSet set = load(CinicSplit::train);
  EXPECT_EQ(set.name, "CINIC-10");
  EXPECT_EQ(set.classes, 10u);
  EXPECT_THAT(set.labels, ElementsAre(0, 1, 2, 3, 3, 3, 4, 5, 6, 7, 8, 9));
  Bytes reds;
  for (std::size_t i = 0; i < set.count(); ++i) reds.push_back(set.pixels.at(i * set.image_bytes()));
  EXPECT_THAT(reds, ElementsAre(0, 1, 2, 32, 3, 33, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(set.pixels.size(), set.count() * 3 * 32 * 32);
  EXPECT_EQ(set.pixels[1024], 100) << "green comes after all of red";
  EXPECT_EQ(set.pixels[3071], 200);
  EXPECT_EQ(load(CinicSplit::test).count(), 10u);
}

TEST_F(Cinic, ReadsTheThirdPartByItself) {
  write_split("valid");
  EXPECT_EQ(load(CinicSplit::valid).count(), 10u);
}

TEST_F(Cinic, SaysWhichFoldersHaveNoImages) {
  write_split("train");
  write("test", 8, "notes.txt", {1});
  EXPECT_THAT(error_of(CinicSplit::train),
              AllOf(HasSubstr("CINIC-10 is not complete in " + directory_.path().string()),
                    HasSubstr("train/airplane/*.png: found"), HasSubstr("test/airplane/*.png: missing"),
                    HasSubstr("test/ship/*.png: missing"), HasSubstr("CINIC-10.tar.gz"), Not(HasSubstr("with .gz"))));
  EXPECT_THAT(error_of(CinicSplit::valid), AllOf(HasSubstr("valid/dog/*.png: missing"), Not(HasSubstr("train/"))));
  EXPECT_THAT(usage_error_of([] { load_cinic10("/nothing/here", CinicSplit::test); }), HasSubstr("no such directory"));
}

TEST_F(Cinic, NamesTheImageThatIsBad) {
  write_split("train");
  write_split("test");
  write("test", 9, "z.png", png({1, 2, 3}, {.side = 16}));
  EXPECT_THAT(error_of(CinicSplit::test),
              AllOf(HasSubstr("test/truck/z.png"), HasSubstr("16 × 16 pixels, where 32 × 32")));
  EXPECT_EQ(load(CinicSplit::train).count(), 10u);
}

class Png : public testing::Test {
 protected:
  // The three colours of an image in which all pixels are equal.
  Bytes colours_of(const Bytes& bytes) const {
    Bytes pixels = {7};  // what was there before stays
    append_png(directory_.write("image.png", bytes), {.rows = 32, .columns = 32}, pixels);
    EXPECT_EQ(pixels.size(), 1u + 3 * 1024);
    Bytes colours;
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const Bytes plane(pixels.begin() + 1 + static_cast<std::ptrdiff_t>(channel * 1024),
                        pixels.begin() + 1 + static_cast<std::ptrdiff_t>((channel + 1) * 1024));
      EXPECT_THAT(plane, Each(plane[0]));
      colours.push_back(plane[0]);
    }
    return colours;
  }
  std::string error_of(const Bytes& bytes) const {
    Bytes pixels;
    const auto path = directory_.write("image.png", bytes);
    std::string error = usage_error_of([&] { append_png(path, {.rows = 32, .columns = 32}, pixels); });
    EXPECT_THAT(pixels, IsEmpty());
    EXPECT_THAT(error, testing::StartsWith(path.string()));
    return error;
  }

  TemporaryDirectory directory_;
};

TEST_F(Png, EveryColourTypeBecomesRgb) {
  EXPECT_THAT(colours_of(png({10, 20, 30})), ElementsAre(10, 20, 30));
  EXPECT_THAT(colours_of(png({10, 20, 30}, {.interlace = PNG_INTERLACE_ADAM7})), ElementsAre(10, 20, 30));
  EXPECT_THAT(colours_of(png({10, 20, 30, 0}, {.colour_type = PNG_COLOR_TYPE_RGB_ALPHA})), ElementsAre(10, 20, 30));
  EXPECT_THAT(colours_of(png({77}, {.colour_type = PNG_COLOR_TYPE_GRAY})), ElementsAre(77, 77, 77));
  EXPECT_THAT(colours_of(png({77, 128}, {.colour_type = PNG_COLOR_TYPE_GRAY_ALPHA})), ElementsAre(77, 77, 77));
  EXPECT_THAT(colours_of(png({0xff}, {.colour_type = PNG_COLOR_TYPE_GRAY, .bits = 1})), ElementsAre(255, 255, 255));
  EXPECT_THAT(colours_of(png({0}, {.colour_type = PNG_COLOR_TYPE_PALETTE})), ElementsAre(10, 20, 30));
  EXPECT_THAT(colours_of(png({10, 255, 20, 255, 30, 255}, {.bits = 16})), ElementsAre(10, 20, 30));
}

TEST_F(Png, SaysWhatIsWrong) {
  const Bytes whole = png({10, 20, 30});
  EXPECT_THAT(error_of({}), HasSubstr("is not a PNG file, of which it has the name (0 bytes)"));
  EXPECT_THAT(error_of({'G', 'I', 'F', '8', '9', 'a', 0, 0, 0}), HasSubstr("is not a PNG file"));
  EXPECT_THAT(error_of(Bytes(whole.begin(), whole.begin() + 8)), HasSubstr("the file ends too early"));
  Bytes wrong = whole;
  wrong[wrong.size() - 20] ^= 1;
  EXPECT_THAT(error_of(wrong), AllOf(HasSubstr("is a damaged PNG file ("), HasSubstr("unpack the archive again")));
  wrong = whole;
  wrong[18] = 1;  // of the width, with which its checksum no longer goes
  EXPECT_THAT(error_of(wrong), HasSubstr("damaged PNG file (IHDR: CRC error)"));
  Bytes pixels;
  EXPECT_THAT(usage_error_of([&] {
                append_png(directory_.path() / "none.png", {32, 32}, pixels);
              }),
              AllOf(HasSubstr("cannot open"), HasSubstr("none.png: No such file")));
}

// Every place at which a file can be cut off is an error and leaves nothing behind.
TEST_F(Png, NoticesEveryCut) {
  const Bytes whole = png({10, 20, 30});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THAT(error_of(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))), Not(IsEmpty()));
  }
}

}  // namespace
}  // namespace fedrun::data
