// Reads LEAF files made here in the true form, and says of others what is wrong with them.
#include <fedrun/data/leaf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

// 784 numbers, of which the first is given.
std::string image(const std::string& first) {
  std::string text = "[" + first;
  for (int i = 1; i < 784; ++i) text += ", 1.0";
  return text + "]";
}

std::string text_of(char first) { return "\"" + std::string(1, first) + std::string(79, 'a') + "\""; }

std::string leaf_file(const std::string& user_data) {
  return R"({"users": ["u"], "num_samples": [1], "hierarchies": [null], "user_data": {)" + user_data + "}}";
}

std::string user(const std::string& name, const std::string& x, const std::string& y) {
  return "\"" + name + "\": {\"x\": [" + x + "], \"y\": [" + y + "]}";
}

class Leaf : public testing::Test {
 protected:
  Leaf() {
    std::filesystem::create_directory(directory_.path() / "train");
    std::filesystem::create_directory(directory_.path() / "test");
  }
  void write(const std::string& name, const std::string& text) const {
    directory_.write(name, Bytes(text.begin(), text.end()));
  }
  LeafSet load(LeafKind kind) const { return load_leaf(directory_.path(), kind); }
  std::string error_of(LeafKind kind) const {
    return usage_error_of([&] { load(kind); });
  }

  TemporaryDirectory directory_;
};

TEST_F(Leaf, ReadsFemnistFromSeveralFiles) {
  write("train/b.json", leaf_file(user("writer2", image("0.25"), "61")));
  write("train/a.json", leaf_file(user("writer1", image("0.5") + ", " + image("0"), "3, 7") + ", " +
                                  R"("writer3": {"y": [4], "x": [)" + image("0.75") + "]}"));
  write("test/a.json", leaf_file(user("writer1", image("1"), "5") + ", " + user("writer4", image("1"), "6")));
  const LeafSet leaf = load(LeafKind::femnist);
  EXPECT_THAT(leaf.users, ElementsAre("writer1", "writer2", "writer3", "writer4"));
  EXPECT_THAT(leaf.samples.sample_shape, ElementsAre(1, 28, 28));
  EXPECT_EQ(leaf.samples.classes, 62u);
  EXPECT_THAT(leaf.samples.labels, ElementsAre(3, 7, 4, 61, 5, 6));
  EXPECT_EQ(leaf.samples.values.size(), 6u * 784);
  EXPECT_EQ(leaf.samples.values[0], 0.5F);
  EXPECT_EQ(leaf.samples.values[3 * 784], 0.25F);
  EXPECT_THAT(leaf.clients.train.samples_of(0), ElementsAre(0, 1));
  EXPECT_THAT(leaf.clients.train.samples_of(1), ElementsAre(3));
  EXPECT_THAT(leaf.clients.test.samples_of(0), ElementsAre(4));
  EXPECT_THAT(leaf.clients.test.samples_of(1), IsEmpty());
  EXPECT_THAT(leaf.clients.train.samples_of(3), IsEmpty());
  EXPECT_THAT(leaf.samples.clients.samples_of(0), ElementsAre(0, 1, 4));
}

TEST_F(Leaf, ReadsShakespeare) {
  write("train/a.json", leaf_file(user("HAMLET", text_of(' ') + ", " + text_of('}'), R"("\n", "b")")));
  write("test/a.json", leaf_file(user("HAMLET", text_of('@'), "\"z\"")));
  const LeafSet leaf = load(LeafKind::shakespeare);
  EXPECT_THAT(leaf.samples.sample_shape, ElementsAre(80));
  EXPECT_EQ(leaf.samples.values.size(), 3u * 80);
  EXPECT_EQ(leaf.samples.values[0], 2) << "the second letter of the alphabet, counted from 1";
  EXPECT_EQ(leaf.samples.values[80], 80) << "the last";
  EXPECT_EQ(leaf.samples.values[160], 81) << "not in the alphabet";
  EXPECT_EQ(leaf.samples.labels[0], 1);
  EXPECT_EQ(leaf.samples.labels[1] - static_cast<int>(leaf.samples.values[1]), 1) << "b comes after a";
  EXPECT_THAT(leaf.clients.train.samples_of(0), ElementsAre(0, 1));
  EXPECT_THAT(leaf.clients.test.samples_of(0), ElementsAre(2));
}

TEST_F(Leaf, SaysWhatIsMissing) {
  EXPECT_THAT(error_of(LeafKind::femnist),
              AllOf(HasSubstr("there is no FEMNIST in " + (directory_.path() / "train").string()),
                    HasSubstr("no file *.json"), HasSubstr("github.com/TalwalkarLab/leaf"), HasSubstr("data/femnist")));
  write("train/a.json", leaf_file(user("HAMLET", text_of('a'), "\"b\"")));
  EXPECT_THAT(error_of(LeafKind::shakespeare), HasSubstr((directory_.path() / "test").string()));
}

TEST_F(Leaf, SaysWhatIsWrong) {
  const auto error_of_file = [&](LeafKind kind, const std::string& text) {
    write("train/a.json", text);
    return error_of(kind);
  };
  EXPECT_THAT(error_of_file(LeafKind::femnist, leaf_file(user("w", image("1"), "62"))),
              AllOf(HasSubstr("a.json is not LEAF's FEMNIST: user w: the label 62"), HasSubstr("0 to 61")));
  EXPECT_THAT(error_of_file(LeafKind::femnist, leaf_file(user("w", image("1"), "1.5"))), HasSubstr("the label 1.5"));
  EXPECT_THAT(error_of_file(LeafKind::femnist, leaf_file(user("w", image("1"), "1, 2"))),
              HasSubstr("user w: x and y do not fit: there are 784 values for 2 samples of 784"));
  EXPECT_THAT(error_of_file(LeafKind::femnist, leaf_file(user("w", text_of('a'), "1"))),
              HasSubstr("text among the samples"));
  EXPECT_THAT(error_of_file(LeafKind::femnist, leaf_file(user("w", "null", "1"))), HasSubstr("null among the samples"));
  EXPECT_THAT(error_of_file(LeafKind::shakespeare, leaf_file(user("w", "\"short\"", "\"a\""))),
              HasSubstr("a text of 5 characters, not 80"));
  EXPECT_THAT(error_of_file(LeafKind::shakespeare, leaf_file(user("w", text_of('a'), "\"ab\""))),
              HasSubstr("the label 'ab' is not one character"));
  EXPECT_THAT(error_of_file(LeafKind::shakespeare, leaf_file(user("w", "1", "2"))),
              HasSubstr("a number among the samples"));
  EXPECT_THAT(error_of_file(LeafKind::femnist, R"({"user_data": )"), HasSubstr("is not LEAF's FEMNIST: byte "));
}

}  // namespace
}  // namespace fedrun::data
