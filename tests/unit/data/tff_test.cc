// Reads HDF5 files made here by the library itself in the form of TensorFlow Federated's, and bad ones.
#include <fedrun/data/tff.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <limits>
#include <string>

#include "idx_files.h"
#include "support/error_text.h"

namespace fedrun::data {
namespace {

using test::usage_error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Shape = std::vector<hsize_t>;

template <typename Value>
hid_t type_of();
template <>
hid_t type_of<std::uint8_t>() {
  return H5T_NATIVE_UINT8;
}
template <>
hid_t type_of<std::int32_t>() {
  return H5T_NATIVE_INT32;
}
template <>
hid_t type_of<std::int64_t>() {
  return H5T_NATIVE_INT64;
}
template <>
hid_t type_of<float>() {
  return H5T_NATIVE_FLOAT;
}

class H5Writer {
 public:
  explicit H5Writer(const std::filesystem::path& path)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)),
        makes_groups_(H5Pcreate(H5P_LINK_CREATE)) {
    H5Pset_create_intermediate_group(makes_groups_, 1);
  }
  ~H5Writer() {
    H5Pclose(makes_groups_);
    H5Fclose(file_);
  }
  H5Writer(const H5Writer&) = delete;
  H5Writer& operator=(const H5Writer&) = delete;

  void group(const std::string& place) const {
    H5Gclose(H5Gcreate2(file_, place.c_str(), makes_groups_, H5P_DEFAULT, H5P_DEFAULT));
  }

  template <typename Value>
  void array(const std::string& place, const Shape& shape, const std::vector<Value>& values) const {
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t array =
        H5Dcreate2(file_, place.c_str(), type_of<Value>(), space, makes_groups_, H5P_DEFAULT, H5P_DEFAULT);
    if (!values.empty()) H5Dwrite(array, type_of<Value>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(array);
    H5Sclose(space);
  }

  // Images that count up from `first`, the colours of a pixel together, and labels of shape [n, 1].
  void cifar_client(const std::string& name, std::uint8_t first, const std::vector<std::int64_t>& labels) const {
    std::vector<std::uint8_t> pixels(labels.size() * 3072);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(first + i);
    array("examples/" + name + "/image", {labels.size(), 32, 32, 3}, pixels);
    array("examples/" + name + "/label", {labels.size(), 1}, labels);
    array("examples/" + name + "/coarse_label", {labels.size(), 1}, labels);
  }

  void emnist_client(const std::string& name, float pixel, const std::vector<std::int32_t>& labels) const {
    array("examples/" + name + "/pixels", {labels.size(), 28, 28}, std::vector<float>(labels.size() * 784, pixel));
    array("examples/" + name + "/label", {labels.size()}, labels);
  }

 private:
  hid_t file_;
  hid_t makes_groups_;
};

class Tff : public testing::Test {
 protected:
  std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }
  TffSet load(TffKind kind) const { return load_tff(directory_.path(), kind); }
  std::string error_of(TffKind kind) const {
    return usage_error_of([&] { load(kind); });
  }
  // The error of a training file of FEMNIST with this in it, beside a good file for testing.
  template <typename Write>
  std::string error_of_emnist(Write write) const {
    H5Writer(path("fed_emnist_test.h5")).emnist_client("w", 0, {1});
    write(H5Writer(path("fed_emnist_train.h5")));
    return error_of(TffKind::fed_emnist);
  }

  TemporaryDirectory directory_;
};

TEST_F(Tff, ReadsFedCifar100) {
  {
    const H5Writer train(path("fed_cifar100_train.h5"));
    train.cifar_client("2", 50, {99});
    train.cifar_client("0", 0, {3, 7});
    train.cifar_client("10", 100, {4});
    const H5Writer test(path("fed_cifar100_test.h5"));
    test.cifar_client("0", 200, {5});
    test.cifar_client("only_tests", 210, {6});
  }
  const TffSet set = load(TffKind::fed_cifar100);
  EXPECT_THAT(set.users, ElementsAre("0", "10", "2", "only_tests"));
  EXPECT_EQ(set.images.name, "fed_cifar100");
  EXPECT_EQ(set.images.classes, 100u);
  EXPECT_EQ(set.train_count, 4u);
  EXPECT_THAT(set.images.labels, ElementsAre(3, 7, 4, 99, 5, 6));
  ASSERT_EQ(set.images.pixels.size(), 6u * 3072);
  EXPECT_EQ(set.images.pixels[0], 0);
  EXPECT_EQ(set.images.pixels[1], 3) << "the red of the second pixel";
  EXPECT_EQ(set.images.pixels[1024], 1) << "the green of the first";
  EXPECT_EQ(set.images.pixels[2048 + 1023], 3071 % 256) << "the blue of the last";
  EXPECT_EQ(set.images.pixels[2 * 3072], 100);
  EXPECT_EQ(set.images.pixels[5 * 3072], 210);
  EXPECT_THAT(set.clients.train.samples_of(0), ElementsAre(0, 1));
  EXPECT_THAT(set.clients.train.samples_of(1), ElementsAre(2));
  EXPECT_THAT(set.clients.train.samples_of(2), ElementsAre(3));
  EXPECT_THAT(set.clients.train.samples_of(3), IsEmpty());
  EXPECT_THAT(set.clients.test.samples_of(0), ElementsAre(4));
  EXPECT_THAT(set.clients.test.samples_of(1), IsEmpty());
  EXPECT_THAT(set.clients.test.samples_of(3), ElementsAre(5));
}

TEST_F(Tff, ReadsFedEmnist) {
  {
    const H5Writer train(path("fed_emnist_train.h5"));
    train.emnist_client("f0000_14", 1.0F, {61, 0});
    train.emnist_client("f0001_41", 253.0F / 255, {10});
    train.emnist_client("f0002_00", 0.5F, {});
    H5Writer(path("fed_emnist_test.h5")).emnist_client("f0001_41", 0, {11});
  }
  const TffSet set = load(TffKind::fed_emnist);
  EXPECT_THAT(set.users, ElementsAre("f0000_14", "f0001_41", "f0002_00"));
  EXPECT_EQ(set.images.channels, 1u);
  EXPECT_EQ(set.images.classes, 62u);
  EXPECT_THAT(set.images.labels, ElementsAre(61, 0, 10, 11));
  ASSERT_EQ(set.images.pixels.size(), 4u * 784);
  EXPECT_EQ(set.images.pixels[0], 255);
  EXPECT_EQ(set.images.pixels[2 * 784], 253);
  EXPECT_EQ(set.images.pixels[3 * 784], 0);
  EXPECT_THAT(set.clients.train.samples_of(2), IsEmpty());
  EXPECT_THAT(set.clients.test.samples_of(1), ElementsAre(3));
}

TEST_F(Tff, EveryByteComesBackFromItsNumber) {
  std::vector<float> pixels(784);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 256) / 255.0F;
  for (const char* name : {"fed_emnist_train.h5", "fed_emnist_test.h5"}) {
    const H5Writer file(path(name));
    file.array("examples/w/pixels", {1, 28, 28}, pixels);
    file.array<std::int32_t>("examples/w/label", {1}, {0});
  }
  const TffSet set = load(TffKind::fed_emnist);
  for (std::size_t i = 0; i < 784; ++i) EXPECT_EQ(set.images.pixels[i], i % 256);
}

TEST_F(Tff, SaysWhatIsMissing) {
  EXPECT_FALSE(has_tff(directory_.path(), TffKind::fed_cifar100));
  H5Writer(path("fed_cifar100_test.h5")).cifar_client("0", 0, {1});
  EXPECT_TRUE(has_tff(directory_.path(), TffKind::fed_cifar100));
  EXPECT_THAT(error_of(TffKind::fed_cifar100),
              AllOf(HasSubstr("fed_cifar100 is not complete in " + directory_.path().string()),
                    HasSubstr("fed_cifar100_train.h5: missing"), HasSubstr("fed_cifar100_test.h5: found"),
                    HasSubstr("https://storage.googleapis.com/tff-datasets-public/fed_cifar100.tar.bz2"),
                    Not(HasSubstr("with .gz"))));
  EXPECT_THAT(error_of(TffKind::fed_emnist), HasSubstr("fed_emnist_test.h5: missing"));
}

TEST_F(Tff, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(
      error_of_emnist([](const H5Writer& file) { file.group("samples"); }),
      AllOf(HasSubstr("fed_emnist_train.h5, examples: there is no such group (object 'examples' doesn't exist)"),
            HasSubstr("Get it again: it is in fed_emnist.tar.bz2, from https://")));
  EXPECT_THAT(error_of_emnist([](const H5Writer& file) { file.group("examples"); }),
              HasSubstr("examples: there are no clients"));
  EXPECT_THAT(error_of_emnist([](const H5Writer& file) { file.group("examples/w"); }),
              HasSubstr("examples/w/label: there is no such array (object 'label' doesn't exist)"));
  EXPECT_THAT(error_of_emnist([](const H5Writer& file) { file.array<std::int32_t>("examples/w/label", {1}, {1}); }),
              HasSubstr("examples/w/pixels: there is no such array"));
  EXPECT_THAT(error_of_emnist([](const H5Writer& file) { file.cifar_client("w", 0, {1}); }),
              HasSubstr("examples/w/pixels: there is no such array"));
  EXPECT_THAT(error_of_emnist([](const H5Writer& file) { file.emnist_client("w", 0, {62}); }),
              HasSubstr("examples/w/label: the label 62, where FEMNIST has 0 to 61"));
  EXPECT_THAT(error_of_emnist([](const H5Writer& file) { file.emnist_client("w", 0, {-1}); }),
              HasSubstr("the label -1"));
  EXPECT_THAT(error_of_emnist([](const H5Writer& file) { file.emnist_client("w", 1.5F, {1}); }),
              HasSubstr("examples/w/pixels: the pixel 1.5, where 0 to 1 was expected"));
  EXPECT_THAT(error_of_emnist(
                  [](const H5Writer& file) { file.emnist_client("w", std::numeric_limits<float>::quiet_NaN(), {1}); }),
              HasSubstr("the pixel nan"));
}

TEST_F(Tff, SaysWhichShapeOrTypeIsWrong) {
  const auto error_of_arrays = [&](const auto& pixels, const Shape& pixel_shape, const auto& labels,
                                   const Shape& label_shape) {
    return error_of_emnist([&](const H5Writer& file) {
      file.array("examples/w/pixels", pixel_shape, pixels);
      file.array("examples/w/label", label_shape, labels);
    });
  };
  const std::vector<float> image(784, 0.5F);
  const std::vector<std::int32_t> label = {1};
  EXPECT_EQ(error_of_arrays(image, {1, 28, 28, 1}, label, {1, 1}), "no error") << "dimensions of 1 do not count";
  EXPECT_THAT(error_of_arrays(image, {1, 784}, label, {1}),
              HasSubstr("examples/w/pixels: an array of shape [1, 784], where [samples, 28, 28] was expected"));
  EXPECT_THAT(error_of_arrays(image, {28, 28}, label, {1}), HasSubstr("an array of shape [28, 28]"));
  EXPECT_THAT(error_of_arrays(image, {}, label, {1}), HasSubstr("an array of shape []"));
  EXPECT_THAT(error_of_arrays(image, {1, 28, 28}, std::vector<std::int32_t>{1, 2}, {1, 2}),
              HasSubstr("examples/w/label: an array of shape [1, 2], where [samples] was expected"));
  EXPECT_THAT(error_of_arrays(image, {1, 28, 28}, std::vector<std::int32_t>{1, 2}, {2}),
              HasSubstr("examples/w/pixels: 1 images, but the client has 2 labels"));
  EXPECT_THAT(error_of_arrays(std::vector<std::uint8_t>(784), {1, 28, 28}, label, {1}),
              HasSubstr("an array of 8-bit unsigned integers, not of floating point numbers"));
  EXPECT_THAT(error_of_arrays(image, {1, 28, 28}, std::vector<float>{1}, {1}),
              HasSubstr("examples/w/label: an array of 32-bit floating point numbers, not of integers"));
  EXPECT_THAT(error_of_arrays(std::vector<float>{}, {1, 28, 28}, label, {1}),
              HasSubstr("examples/w/pixels: the array has a shape, but was never written"));
  EXPECT_THAT(error_of_arrays(image, {1, 28, 28}, std::vector<std::int32_t>{}, {1ULL << 40}),
              HasSubstr("1099511627776 samples, which is too many to be true"));
}

TEST_F(Tff, CifarHasBytes) {
  for (const char* name : {"fed_cifar100_train.h5", "fed_cifar100_test.h5"}) {
    const H5Writer file(path(name));
    file.array("examples/0/image", {1, 32, 32, 3}, std::vector<std::int64_t>(3072));
    file.array<std::int64_t>("examples/0/label", {1, 1}, {0});
  }
  EXPECT_THAT(error_of(TffKind::fed_cifar100),
              HasSubstr("fed_cifar100_train.h5, examples/0/image: an array of 64-bit signed integers, not of 8-bit "
                        "unsigned integers"));
}

TEST_F(Tff, NoticesFilesThatAreCutOffOrNoHdf5) {
  H5Writer(path("fed_emnist_test.h5")).emnist_client("w", 0, {1});
  H5Writer(path("fed_emnist_train.h5")).emnist_client("w", 0, {1, 2, 3});
  EXPECT_EQ(load(TffKind::fed_emnist).images.count(), 4u);
  std::filesystem::resize_file(path("fed_emnist_train.h5"),
                               std::filesystem::file_size(path("fed_emnist_train.h5")) / 2);
  EXPECT_THAT(
      error_of(TffKind::fed_emnist),
      AllOf(HasSubstr("fed_emnist_train.h5 cannot be opened as HDF5: truncated file"), HasSubstr("Get it again")));
  directory_.write("fed_emnist_train.h5", {'B', 'Z', 'h', '9'});
  EXPECT_THAT(error_of(TffKind::fed_emnist), HasSubstr("cannot be opened as HDF5"));
  directory_.write("fed_emnist_train.h5", {});
  EXPECT_THAT(error_of(TffKind::fed_emnist), HasSubstr("cannot be opened as HDF5"));
}

// Whatever is damaged, the answer is the data or a message, and never more than that.
TEST_F(Tff, SurvivesDamageAnywhere) {
  H5Writer(path("fed_emnist_test.h5")).emnist_client("w", 0, {1});
  H5Writer(path("whole.h5")).emnist_client("w", 0, {1});
  std::ifstream file(path("whole.h5"), std::ios::binary);
  const Bytes whole{std::istreambuf_iterator<char>(file), {}};
  std::size_t noticed = 0;
  for (std::size_t place = 0; place < whole.size(); place += 37) {
    Bytes damaged = whole;
    damaged[place] ^= 0xff;
    directory_.write("fed_emnist_train.h5", damaged);
    if (error_of(TffKind::fed_emnist) != "no error") ++noticed;
  }
  EXPECT_GT(noticed, 0u);
}

}  // namespace
}  // namespace fedrun::data
