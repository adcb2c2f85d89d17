// Reads host lists and host files by table; also checks the example that users copy.
#include <fedrun/launcher/hosts.h>
#include <fedrun/launcher/placement.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/error_text.h"

namespace fedrun::launcher {
namespace {

using test::usage_error_of;
using Hosts = std::vector<Host>;
using testing::HasSubstr;
using testing::StartsWith;

TEST(HostList, ReadsNamesAndSlots) {
  const struct {
    const char* list;
    Hosts hosts;
  } cases[] = {
      {"a", {{"a", 1}}},
      {"a:2,b:3", {{"a", 2}, {"b", 3}}},
      {"a:2,b", {{"a", 2}, {"b", 1}}},
      {"a, b:2 ", {{"a", 1}, {"b", 2}}},
      {"b:1,a:2,b:3", {{"b", 4}, {"a", 2}}},
      {"10.0.0.1:2,node_2.example.org:65536", {{"10.0.0.1", 2}, {"node_2.example.org", 65536}}},
  };
  for (const auto& example : cases) EXPECT_EQ(parse_hosts(example.list), example.hosts) << example.list;
}

TEST(HostList, HostsWithoutANumberTakeTheDefault) {
  EXPECT_EQ(parse_hosts("a,b:2", 4), (Hosts{{"a", 4}, {"b", 2}}));
  EXPECT_EQ(parse_hostfile("a\nb:2\nc slots=1\n", "f", 4), (Hosts{{"a", 4}, {"b", 2}, {"c", 1}}));
}

TEST(HostList, ErrorsSayWhatIsWrong) {
  const struct {
    const char* list;
    const char* message;
  } cases[] = {
      {"", "hosts '': a host name is missing; write them as a:2,b:2"},
      {"a,,b", "hosts 'a,,b': a host name is missing"},
      {"a,", "hosts 'a,': a host name is missing"},
      {":2", "hosts ':2': a host name is missing"},
      {"a:", "hosts 'a:': number of slots: '' is not a whole number from 1 to 65536"},
      {"a:0", "hosts 'a:0': number of slots: '0' is not a whole number from 1 to 65536"},
      {"a:x", "hosts 'a:x': number of slots: 'x' is not a whole number"},
      {"[::1]:2", "hosts '[::1]:2': '[::1]:2' looks like an IPv6 address, which Open MPI does not take"},
      {"fd00::2", "hosts 'fd00::2': 'fd00::2' looks like an IPv6 address"},
  };
  for (const auto& example : cases) {
    EXPECT_THAT(usage_error_of([&] { parse_hosts(example.list); }), StartsWith(example.message));
  }
}

TEST(HostList, HostileNamesDoNotPass) {
  for (const char* name :
       {"-oProxyCommand=x", "a b", "a;b", "$(touch x)", "a'b", "a\"b", "a`b`", "a|b", "a/b", "user@a", "\xc3\xa4"}) {
    EXPECT_THAT(usage_error_of([&] { parse_hosts(name); }), HasSubstr("is no host name")) << name;
    EXPECT_NE(usage_error_of([&] { parse_hostfile(name, "f"); }), "no UsageError") << name;
  }
}

TEST(HostFile, ReadsEverySpelling) {
  const char* text =
      "# a comment\n"
      "\n"
      "a slots=2\n"
      "b:3   # three\n"
      "  c\t\r\n"
      "d\tslots=4\r\n"
      "a\n"
      "#e slots=9\n"
      "f";
  EXPECT_EQ(parse_hostfile(text, "f"), (Hosts{{"a", 3}, {"b", 3}, {"c", 1}, {"d", 4}, {"f", 1}}));
}

TEST(HostFile, ErrorsNameFileAndLine) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"a\n\nb slots=x\n", "hosts.txt:3: number of slots: 'x' is not a whole number from 1 to 65536"},
      {"a slots = 2\n", "hosts.txt:1: 'a slots = 2' is not understood: a line is 'host', 'host:N' or 'host slots=N'"},
      {"# x\na 2\n", "hosts.txt:2: 'a 2' is not understood"},
      {"a:2 slots=2\n", "hosts.txt:1: 'a:2 slots=2' is not understood"},
      {"a slots=2 max_slots=3\n", "hosts.txt:1: number of slots: '2 max_slots=3' is not"},
      {"a,b\n", "hosts.txt:1: 'a,b' is no host name"},
      {"", "hosts.txt names no host"},
      {"# only this\n", "hosts.txt names no host"},
  };
  for (const auto& example : cases) {
    EXPECT_THAT(usage_error_of([&] { parse_hostfile(example.text, "hosts.txt"); }), StartsWith(example.message));
  }
}

TEST(HostFile, MissingFileAndDirectory) {
  EXPECT_EQ(usage_error_of([] { read_hostfile("/no/such/file"); }),
            "cannot read the host file /no/such/file: No such file or directory");
  EXPECT_EQ(usage_error_of([] { read_hostfile("/"); }), "cannot read the host file /: it is a directory");
}

TEST(HostFile, TheExampleIsValid) {
  EXPECT_EQ(read_hostfile(FEDRUN_SOURCE_DIR "/hostfile.example"),
            (Hosts{{"node1", 4}, {"node2", 4}, {"192.0.2.7", 2}, {"node3.example.org", 1}}));
}

TEST(Hosts, KnowsThisMachine) {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  EXPECT_TRUE(is_this_machine({"localhost", 1}));
  EXPECT_TRUE(is_this_machine({"127.0.0.1", 1}));
  EXPECT_TRUE(is_this_machine({name, 1}));
  EXPECT_FALSE(is_this_machine({"node-that-is-not-here", 1}));
  EXPECT_FALSE(is_this_machine({"192.0.2.1", 1}));
}

TEST(Placement, RanksComeFromTheUserOrFromTheSlots) {
  EXPECT_EQ(place(std::nullopt, {}).ranks, 1);
  EXPECT_EQ(place(1000, {}).ranks, 1000);
  EXPECT_EQ(place(std::nullopt, {{"a", 2}, {"b", 3}}).ranks, 5);
  EXPECT_EQ(place(5, {{"a", 2}, {"b", 3}}).ranks, 5);
  EXPECT_EQ(place(1, {{"a", 2}, {"b", 3}}).ranks, 1);
}

TEST(Placement, ListedHostsTakeNoMoreThanTheirSlots) {
  EXPECT_EQ(usage_error_of([] {
              place(6, {{"a", 2}, {"b", 3}});
            }),
            "-np 6 needs 6 slots, but the hosts have 5: raise the slots (such as a:3), add hosts, or pass -np 5");
}

TEST(Placement, HasAnEnd) {
  const Hosts many(65536, {"a", 65536});
  EXPECT_EQ(usage_error_of([&] { place(std::nullopt, many); }),
            "the hosts have 4294967296 slots, and a run has at most 65536 ranks: pass -np");
  EXPECT_EQ(place(3, many).ranks, 3);
}

TEST(Placement, KnowsWhetherItLeavesThisMachine) {
  EXPECT_TRUE(place(2, {}).on_this_machine());
  EXPECT_TRUE(place(2, {{"localhost", 2}}).on_this_machine());
  EXPECT_FALSE(place(2, {{"localhost", 2}, {"node-that-is-not-here", 2}}).on_this_machine());
  EXPECT_TRUE(place(2, {{"node-that-is-not-here", 2}}).on_one_host());
  EXPECT_FALSE(place(2, {{"a", 1}, {"b", 1}}).on_one_host());
}

}  // namespace
}  // namespace fedrun::launcher
