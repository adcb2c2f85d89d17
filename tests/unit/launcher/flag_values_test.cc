// Values of flags by table: how words are split, which networks have the right shape, and what mpirun must not get.
#include <fedrun/launcher/flag_values.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"

namespace fedrun::launcher {
namespace {

using test::usage_error_of;
using testing::StartsWith;
using Words = std::vector<std::string>;

TEST(SplitWords, AsAShellDoes) {
  const struct {
    const char* text;
    Words words;
  } cases[] = {
      {"", {}},
      {"  \t\n ", {}},
      {"a", {"a"}},
      {" a  b\tc\n", {"a", "b", "c"}},
      {"'a b' \"c d\"", {"a b", "c d"}},
      {"a'b c'd", {"ab cd"}},
      {"''", {""}},
      {"a \"\" b", {"a", "", "b"}},
      {"a\\ b", {"a b"}},
      {"\\'", {"'"}},
      {"'\\n'", {"\\n"}},
      {"\"\\\"\\\\\\$\\`\\n\"", {"\"\\$`\\n"}},
      {"$HOME $(touch x) `touch x` ; ~ *", {"$HOME", "$(touch", "x)", "`touch", "x`", ";", "~", "*"}},
      {"\xc3\xa4 #no comment", {"\xc3\xa4", "#no", "comment"}},
  };
  for (const auto& example : cases) EXPECT_EQ(split_words(example.text), example.words) << example.text;
}

TEST(SplitWords, SaysWhatIsOpen) {
  EXPECT_EQ(usage_error_of([] { split_words("a 'b"); }), "the quote ' is not closed in: a 'b");
  EXPECT_EQ(usage_error_of([] { split_words("\"b\\\""); }), "the quote \" is not closed in: \"b\\\"");
  EXPECT_EQ(usage_error_of([] { split_words("a\\"); }), "there is nothing behind the backslash at the end of: a\\");
}

TEST(MpiArguments, AreAppended) {
  Words arguments = {"-a"};
  append_mpi_arguments(arguments, "--mca btl ^openib --map-by ppr:2:node:PE=2 -x 'A=b c'");
  EXPECT_EQ(arguments, (Words{"-a", "--mca", "btl", "^openib", "--map-by", "ppr:2:node:PE=2", "-x", "A=b c"}));
}

TEST(MpiArguments, ErrorsSayWhatToUse) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"", "there are no arguments in it"},
      {"ls -l", "'ls' is no option of mpirun, which would take it for the program"},
      {"-d -np 4", "'-np' is for fedrun itself: use its -np"},
      {"--n 4", "'--n' is for fedrun itself: use its -np"},
      {"--hostfile f", "'--hostfile' is for fedrun itself: use its -H or --hostfile"},
      {"-H a", "'-H' is for fedrun itself: use its -H or --hostfile"},
      {"-d : -np 2 ls", "':' would begin a program"},
      {"-d -- ls", "'--' would begin a program"},
      {"--mca a '$(touch x)'", "'$(touch x)' contains '$', which the shells of other hosts would read"},
      {"--mca a 'b;c'", "'b;c' contains ';', which the shells"},
      {"--mca a \"b`c`\"", "'b`c`' contains '`', which the shells"},
      {"--mca a 'b\nc'", "'b\nc' contains a control character, which the shells"},
  };
  for (const auto& example : cases) {
    Words arguments;
    EXPECT_THAT(usage_error_of([&] { append_mpi_arguments(arguments, example.text); }), StartsWith(example.message));
    EXPECT_EQ(arguments, Words{}) << example.text;
  }
}

TEST(NetworkInterfaces, ReadsNamesAndNetworks) {
  for (const char* text : {"eth0", "eth0,ib0", "10.0.0.0/8", "eth0.100,br-lan,wlan@1,eth0:1,192.168.1.0/24",
                           "0.0.0.0/0", "abcdefghijklmno"}) {
    EXPECT_EQ(network_interfaces_value(text), text);
  }
}

TEST(NetworkInterfaces, ErrorsNameTheItem) {
  constexpr const char* neither = "is neither an interface such as eth0 nor a network such as 10.0.0.0/8";
  for (const std::string item : {"", "-oProxyCommand=x", "a b", "$(touch x)", "a;b", "abcdefghijklmnop"}) {
    EXPECT_EQ(usage_error_of([&] { network_interfaces_value("eth0," + item); }), "'" + item + "' " + neither);
  }
  for (const char* item : {"10.0.0.0/33", "10.0.0/8", "10.0.0.256/8", "10.0.0.0.0/8", "10.0.0.0/", "a/8", "1.2.3",
                           "fd00::/8", "10.0.0.0/8/8", "10.0.0.-1/8"}) {
    EXPECT_EQ(usage_error_of([&] { network_interfaces_value(item); }),
              "'" + std::string(item) + "' is no network such as 10.0.0.0/8");
  }
  EXPECT_EQ(usage_error_of([] { network_interfaces_value("10.0.0.1"); }),
            "'10.0.0.1' is an address: add its network's length, such as 10.0.0.1/24");
}

}  // namespace
}  // namespace fedrun::launcher
