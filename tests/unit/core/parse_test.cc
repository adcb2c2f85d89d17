#include <fedrun/core/error.h>
#include <fedrun/core/parse.h>
#include <gtest/gtest.h>

#include <string>

namespace fedrun {
namespace {

TEST(ParseInteger, TakesTheWholeRange) {
  EXPECT_EQ(parse_integer<int>("1", 1, 4), 1);
  EXPECT_EQ(parse_integer<int>("4", 1, 4), 4);
  EXPECT_EQ(parse_integer<int>("-3", -5, 5), -3);
}

TEST(ParseInteger, RefusesWhatIsNotExactlyANumberInRange) {
  for (const char* text : {"", " 1", "1 ", "+1", "0x1", "1.0", "one", "0", "5", "99999999999999999999", "1;ls"}) {
    EXPECT_THROW(parse_integer<int>(text, 1, 4), UsageError) << text;
  }
}

TEST(ParseWord, FindsTheValueOrListsTheWords) {
  EXPECT_EQ(parse_word<int>("b", {{"a", 1}, {"b", 2}}), 2);
  try {
    parse_word<int>("c", {{"a", 1}, {"b", 2}});
    FAIL() << "no error for an unknown word";
  } catch (const UsageError& error) {
    EXPECT_EQ(std::string(error.what()), "'c' is not one of a, b");
  }
}

}  // namespace
}  // namespace fedrun
