// Lines stay whole, whatever order ranks write in, and nothing of what they write is changed.
#include <fedrun/launcher/line_splitter.h>
#include <fedrun/launcher/screen.h>
#include <gtest/gtest.h>

namespace fedrun::launcher {
namespace {

using Pieces = std::vector<std::string>;

TEST(LineSplitter, ByTable) {
  const struct {
    const char* what;
    std::string written;
    Pieces pieces;
    std::string rest;
  } cases[] = {
      {"nothing", "", {}, ""},
      {"lines", "a\n\nb\n", {"a\n", "\n", "b\n"}, ""},
      {"an unfinished line", "a\nb", {"a\n"}, "b"},
      {"a progress bar", "10 %\r20 %\rdone\n", {"10 %\r", "20 %\r", "done\n"}, ""},
      {"a bar that begins with the return", "\r10 %\r20 %", {"\r", "10 %\r"}, "20 %"},
      {"lines of another system", "a\r\nb\r\n", {"a\r\n", "b\r\n"}, ""},
      {"a return at the end may be half of two", "a\r", {}, "a\r"},
      {"letters of several bytes", "Zürich 東京\n", {"Zürich 東京\n"}, ""},
      {"bytes that are no text", std::string("\0\xff\x80\n", 4), {std::string("\0\xff\x80\n", 4)}, ""},
  };
  for (const auto& example : cases) {
    for (size_t cut = 0; cut <= example.written.size(); ++cut) {
      LineSplitter splitter;
      Pieces pieces = splitter.feed(example.written.substr(0, cut));
      for (std::string& piece : splitter.feed(example.written.substr(cut))) pieces.push_back(std::move(piece));
      EXPECT_EQ(pieces, example.pieces) << example.what << ", cut at " << cut;
      EXPECT_EQ(splitter.take_rest(), example.rest) << example.what << ", cut at " << cut;
    }
  }
}

TEST(LineSplitter, UnfinishedTextEndsWithAWholeCharacter) {
  const std::string text = "größe → 東";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    LineSplitter splitter;
    splitter.feed(text.substr(0, cut));
    const std::string first = splitter.take_unfinished();
    EXPECT_TRUE(first.size() == text.size() || (static_cast<unsigned char>(text[first.size()]) & 0xC0U) != 0x80U)
        << cut;
    EXPECT_LT(cut - first.size(), 4U);
    splitter.feed(text.substr(cut));
    EXPECT_EQ(first + splitter.take_rest(), text) << cut;
  }
}

TEST(LineSplitter, ALineOfTenMegabytesStaysWhole) {
  LineSplitter splitter;
  const std::string part(500, 'x');
  for (int i = 0; i < 20000; ++i) ASSERT_TRUE(splitter.feed(part).empty());
  const Pieces pieces = splitter.feed("\n");
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0].size(), 10000001U);
}

class ScreenTest : public testing::Test {
 protected:
  static std::string shown(Screen screen, const std::vector<std::pair<int, std::string>>& pieces) {
    std::string text;
    for (const auto& [rank, piece] : pieces) text += screen.show(rank, piece, {});
    return text;
  }
};

TEST_F(ScreenTest, ByTable) {
  const Screen::Style plain = {.ranks = 2};
  const Screen::Style bare = {.ranks = 2, .prefix = false};
  const Screen::Style terminal = {.ranks = 2, .terminal = true};
  const std::string zero = "\x1b[36m[0]\x1b[0m ";
  const std::string one = "\x1b[33m[1]\x1b[0m ";
  const struct {
    const char* what;
    Screen::Style style;
    std::vector<std::pair<int, std::string>> pieces;
    std::string text;
  } cases[] = {
      {"lines", plain, {{0, "a\n"}, {1, "b\n"}}, "[0] a\n[1] b\n"},
      {"without prefix", bare, {{0, "a\n"}, {1, "b\n"}}, "a\nb\n"},
      {"width of the prefix", {.ranks = 11}, {{0, "a\n"}, {10, "b\n"}}, "[ 0] a\n[10] b\n"},
      {"a line in parts", plain, {{0, "a"}, {0, "b\n"}}, "[0] ab\n"},
      {"another rank ends an unfinished line", plain, {{0, "a"}, {1, "b\n"}, {0, "c\n"}}, "[0] a\n[1] b\n[0] c\n"},
      {"also without prefix", bare, {{0, "a"}, {1, "b\n"}}, "a\nb\n"},
      {"a progress bar", plain, {{0, "1 %\r"}, {0, "2 %\r"}, {0, "end\n"}}, "[0] 1 %\r[0] 2 %\r[0] end\n"},
      {"a line over a bar in a file", plain, {{0, "1 %\r"}, {1, "b\n"}}, "[0] 1 %\r[1] b\n"},
      {"colours", terminal, {{0, "a\n"}, {1, "b\n"}}, zero + "a\n" + one + "b\n"},
      {"a line over a bar on a terminal", terminal, {{0, "1 %\r"}, {1, "b\n"}}, zero + "1 %\r\x1b[K" + one + "b\n"},
  };
  for (const auto& example : cases) {
    EXPECT_EQ(shown(Screen(example.style), example.pieces), example.text) << example.what;
  }
}

TEST_F(ScreenTest, KnowsTheWidthOfThePrefix) {
  EXPECT_EQ(Screen::prefix_columns({.ranks = 2, .terminal = true}), 4);
  EXPECT_EQ(Screen::prefix_columns({.ranks = 11}), 5);
  EXPECT_EQ(Screen::prefix_columns({.ranks = 2, .prefix = false}), 0);
  EXPECT_EQ(Screen::prefix_columns({.ranks = 2, .timestamps = true}), 17);
}

TEST_F(ScreenTest, Timestamps) {
  Screen screen({.ranks = 2, .timestamps = true});
  const std::string line =
      screen.show(1, "x\n", std::chrono::system_clock::time_point(std::chrono::milliseconds(86400789)));
  EXPECT_EQ(line.substr(0, 3), "[1 ");
  EXPECT_EQ(line.substr(line.find('.')), ".789] x\n");
}

TEST_F(ScreenTest, OwnLinesStartOnALineOfTheirOwn) {
  Screen screen({.ranks = 2});
  screen.show(0, "prompt", {});
  EXPECT_EQ(screen.show_lines("fedrun: ending\n"), "\nfedrun: ending\n");
  EXPECT_EQ(screen.show_lines(""), "");
}

TEST_F(ScreenTest, KnowsWhoseLinesStandAtTheBottom) {
  Screen screen({.ranks = 2});
  screen.show(0, "a\n", {});
  screen.show(1, "b\n", {});
  screen.show(1, "c\n", {});
  EXPECT_EQ(screen.lines_at_bottom(1), 2);
  EXPECT_EQ(screen.lines_at_bottom(0), 0);
  screen.show_lines("of fedrun\n");
  EXPECT_EQ(screen.lines_at_bottom(1), 0);
}

}  // namespace
}  // namespace fedrun::launcher
