// Which network a run takes, for clusters, clouds and machines full of bridges, by table.
#include <fedrun/launcher/network_choice.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace fedrun::launcher {
namespace {

using testing::HasSubstr;

// "node1 @10.0.0.1 eth0=10.0.0.1/24 lo=127.0.0.1/8": a name, where it is reached, and what it has.
NetworkMember member(const std::string& text) {
  std::istringstream words(text);
  NetworkMember member;
  words >> member.host;
  for (std::string word; words >> word;) {
    if (word[0] == '@') {
      member.reached_at = parse_ipv4(word.substr(1));
      continue;
    }
    const size_t equals = word.find('=');
    const std::string address = word.substr(equals + 1);
    member.addresses.push_back(
        {word.substr(0, equals), parse_ipv4(address.substr(0, address.find('/'))).value(), parse_network(address)});
  }
  return member;
}

std::vector<NetworkMember> members(const std::vector<std::string>& texts) {
  std::vector<NetworkMember> list;
  for (const std::string& text : texts) list.push_back(member(text));
  return list;
}

TEST(Ipv4, ReadsAndWrites) {
  EXPECT_EQ(to_string(parse_ipv4("192.168.0.255").value()), "192.168.0.255");
  EXPECT_EQ(parse_network("10.1.2.3/20")->text(), "10.1.0.0/20");
  EXPECT_EQ(parse_network("10.1.2.3/0")->text(), "0.0.0.0/0");
  EXPECT_EQ(parse_network("10.1.2.3/32")->text(), "10.1.2.3/32");
  for (const char* wrong :
       {"", "10.0.0.1", "10.0.0/24", "10.0.0.1/33", "10.0.0.1/-1", "10.0.0.1/", "a/24", "10.0.0.1/2x"}) {
    EXPECT_FALSE(parse_network(wrong)) << wrong;
  }
  for (const char* wrong : {"", "1.2.3", "1.2.3.256", "::1", "1.2.3.4 "}) EXPECT_FALSE(parse_ipv4(wrong)) << wrong;
}

TEST(NetworkChoice, ByTable) {
  const struct {
    const char* description;
    std::vector<std::string> hosts;
    Verdict verdict;
    const char* network;
    const char* what;
  } cases[] = {
      {"one network",
       {"a lo=127.0.0.1/8 eth0=10.0.0.1/24", "b lo=127.0.0.1/8 eth0=10.0.0.2/24"},
       Verdict::ok,
       "10.0.0.0/24",
       "10.0.0.0/24 (a eth0 10.0.0.1/24, b eth0 10.0.0.2/24)"},
      {"uneven names of interfaces",
       {"a eth0=10.0.0.1/24", "b enp3s0=10.0.0.2/24", "c bond0=10.0.0.3/24"},
       Verdict::ok,
       "10.0.0.0/24",
       ""},
      {"two networks, reached by the second",
       {"a eth0=10.0.0.1/24 ib0=10.1.0.1/24 @10.1.0.1", "b eth0=10.0.0.2/24 ib0=10.1.0.2/24 @10.1.0.2"},
       Verdict::ok,
       "10.1.0.0/24",
       ""},
      {"nothing known of how they are reached: the first",
       {"a eth0=10.0.0.1/24 ib0=10.1.0.1/24", "b ib0=10.1.0.2/24 eth0=10.0.0.2/24"},
       Verdict::ok,
       "10.0.0.0/24",
       ""},
      {"docker's bridge has the same address everywhere",
       {"a docker0=172.17.0.1/16 eth0=10.0.0.1/24", "b docker0=172.17.0.1/16 eth0=10.0.0.2/24"},
       Verdict::ok,
       "10.0.0.0/24",
       ""},
      {"bridges with different addresses in one network",
       {"a virbr0=192.168.122.1/24 eth0=10.0.0.1/24", "b virbr0=192.168.122.2/24 eth0=10.0.0.2/24"},
       Verdict::ok,
       "10.0.0.0/24",
       ""},
      {"two of three share more",
       {"a eth1=10.1.0.1/24 eth0=10.0.0.1/24", "b eth1=10.1.0.2/24 eth0=10.0.0.2/24", "c eth0=10.0.0.3/24"},
       Verdict::ok,
       "10.0.0.0/24",
       ""},
      {"uneven prefixes: the narrower network that has all",
       {"a eth0=10.0.0.1/16", "b eth0=10.0.0.2/24"},
       Verdict::ok,
       "10.0.0.0/24",
       ""},
      {"uneven prefixes: the wider network, because the narrower lacks one",
       {"a eth0=10.0.7.1/16", "b eth0=10.0.0.2/24"},
       Verdict::ok,
       "10.0.0.0/16",
       ""},
      {"a host that does not tell its prefix", {"a eth0=10.0.0.1/24", "b =10.0.0.2"}, Verdict::ok, "10.0.0.0/24", ""},
      {"each address a network of its own, as in some clouds",
       {"a ens4=10.128.0.2/32 @10.128.0.2", "b ens4=10.128.0.3/32 @10.128.0.3"},
       Verdict::ok,
       "ens4",
       "interface ens4, through a router"},
      {"a router between them, uneven names",
       {"a eth0=10.0.0.1/24 @10.0.0.1", "b ens3=10.9.0.2/24 @10.9.0.2"},
       Verdict::warning,
       "",
       "not in one network; Open MPI tries all addresses"},
      {"nothing in common",
       {"a eth0=10.0.0.1/24", "b eth0=10.9.0.2/24"},
       Verdict::failed,
       "",
       "the hosts have no network in common (a: eth0 10.0.0.1/24; b: eth0 10.9.0.2/24)"},
      {"only loopback", {"a lo=127.0.0.1/8 eth0=10.0.0.1/24", "b lo=127.0.0.1/8"}, Verdict::failed, "", "b: none"},
      {"one machine under two names",
       {"a eth0=10.0.0.1/24", "b eth0=10.0.0.1/24"},
       Verdict::ok,
       "",
       "all is on one machine"},
      {"one machine under two names, and another",
       {"a eth0=10.0.0.1/24", "b eth0=10.0.0.1/24", "c eth0=10.0.0.2/24"},
       Verdict::ok,
       "10.0.0.0/24",
       ""},
      {"one host", {"a lo=127.0.0.1/8"}, Verdict::ok, "", "not needed"},
  };
  for (const auto& example : cases) {
    const NetworkChoice choice = choose_network(members(example.hosts));
    EXPECT_EQ(choice.network, example.network) << example.description;
    EXPECT_EQ(choice.row.verdict, example.verdict) << example.description;
    EXPECT_THAT(choice.row.what, HasSubstr(example.what)) << example.description;
    EXPECT_EQ(choice.row.remedy.empty(), example.verdict == Verdict::ok) << example.description;
  }
}

TEST(NetworkChoice, RemediesNameTheFlag) {
  EXPECT_THAT(choose_network(members({"a eth0=10.0.0.1/24 @10.0.0.1", "b ens3=10.9.0.2/24 @10.9.0.2"})).row.remedy,
              HasSubstr("--network-interfaces eth0,ens3"));
}

TEST(NetworkCheck, EveryHostHasOne) {
  const auto hosts = members({"a eth0=10.0.0.1/24 ib0=10.1.0.1/24", "b ens3=10.0.0.2/24"});
  const struct {
    const char* list;
    Verdict verdict;
    const char* what;
  } cases[] = {
      {"eth0,ens3", Verdict::ok, "eth0,ens3, as you asked"},
      {"10.0.0.0/24", Verdict::ok, "10.0.0.0/24, as you asked"},
      {"ib0,10.0.0.2/32", Verdict::ok, ""},
      {"eth0", Verdict::failed, "--network-interfaces eth0 fits no address of b: ens3 10.0.0.2/24"},
      {"eth", Verdict::failed, "a: eth0 10.0.0.1/24, ib0 10.1.0.1/24; b: ens3"},
      {"10.1.0.0/24", Verdict::failed, "b: ens3"},
  };
  for (const auto& example : cases) {
    const NetworkChoice choice = check_network(hosts, example.list);
    EXPECT_EQ(choice.network, example.list);
    EXPECT_EQ(choice.row.verdict, example.verdict) << example.list;
    EXPECT_THAT(choice.row.what, HasSubstr(example.what)) << example.list;
  }
}

}  // namespace
}  // namespace fedrun::launcher
