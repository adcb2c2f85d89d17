// Slurm allocations faked by variables: which hosts and slots they mean, and that hostile lists come to nothing.
#include <fedrun/launcher/requested_hosts.h>
#include <fedrun/launcher/slurm.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "support/error_text.h"

namespace fedrun::launcher {
namespace {

using test::usage_error_of;
using testing::HasSubstr;
using testing::StartsWith;
using Names = std::vector<std::string>;
using Hosts = std::vector<Host>;
using Environment = std::map<std::string, std::string>;

RunEnv::Lookup lookup_in(const Environment& environment) {
  return [&environment](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
}

std::optional<Names> no_scontrol(const std::string&) { return std::nullopt; }

TEST(NodeList, ByTable) {
  const struct {
    const char* list;
    Names names;
  } cases[] = {
      {"login", {"login"}},
      {"a,b.example.org", {"a", "b.example.org"}},
      {"node[1-3]", {"node1", "node2", "node3"}},
      {"node[01-03,7],gpu[1-2]x,login", {"node01", "node02", "node03", "node7", "gpu1x", "gpu2x", "login"}},
      {"node[008-011]", {"node008", "node009", "node010", "node011"}},
      {"node[9-11]", {"node9", "node10", "node11"}},
      {"r[1-2]n[3-4]", {"r1n3", "r1n4", "r2n3", "r2n4"}},
      {"n[5]", {"n5"}},
      {"[1-2]n", {"1n", "2n"}},
  };
  for (const auto& example : cases) EXPECT_EQ(expand_node_list(example.list), example.names) << example.list;
}

TEST(NodeList, ErrorsSayWhatIsWrong) {
  const struct {
    std::string list;
    const char* message;
  } cases[] = {
      {"", "a host name is missing"},
      {"a,,b", "a host name is missing"},
      {"a[1-2", "the brackets do not match"},
      {"a1-2]", "the brackets do not match"},
      {"a[[1]]", "the brackets do not match"},
      {"a[]", "'' is not a whole number"},
      {"a[1,]", "'' is not a whole number"},
      {"a[x-y]", "'x' is not a whole number"},
      {"a[-3]", "'' is not a whole number"},
      {"a[1-2-3]", "'2-3' is not a whole number"},
      {"a[3-1]", "the range 3-1 runs backwards"},
      {"a[1-999999999]", "there are more than 65536 nodes"},
      {"a[1-65536,1]", "there are more than 65536 nodes"},
      {"a[1-1000]b[1-1000]", "there are more than 65536 nodes"},
      {"a[1-65536],b[1-65536]", "there are more than 65536 nodes"},
      {"a[" + std::string(300, '0') + "]", "a name is too long"},
      {std::string(300, 'a'), "a name is too long"},
      {"$(touch x)", "'$(touch x)' is no host name"},
      {"-oProxyCommand=x", "'-oProxyCommand=x' is no host name"},
      {"a b", "'a b' is no host name"},
      {"a\nb", "'a\nb' is no host name"},
  };
  for (const auto& example : cases) {
    EXPECT_THAT(usage_error_of([&] { expand_node_list(example.list); }), StartsWith(example.message)) << example.list;
  }
}

TEST(NodeCounts, ByTable) {
  EXPECT_EQ(expand_counts("2(x3),1", 4), (std::vector{2, 2, 2, 1}));
  EXPECT_EQ(expand_counts("4", 1), (std::vector{4}));
  EXPECT_EQ(expand_counts("1,2,3", 3), (std::vector{1, 2, 3}));
  const struct {
    const char* text;
    const char* message;
  } errors[] = {
      {"", "'' is not a whole number"},
      {"2(x3", "'2(x3' is not a whole number"},
      {"2(x)", "'' is not a whole number"},
      {"2(x0)", "'0' is not a whole number"},
      {"0", "'0' is not a whole number"},
      {"(x2)", "'' is not a whole number"},
      {"2(x3)", "it has numbers for more than the 2 nodes"},
      {"2(x65536)", "it has numbers for more than the 2 nodes"},
      {"2", "it has numbers for 1 of the 2 nodes"},
  };
  for (const auto& example : errors) {
    EXPECT_THAT(usage_error_of([&] { expand_counts(example.text, 2); }), StartsWith(example.message)) << example.text;
  }
}

TEST(SlurmHosts, SlotsByTable) {
  const struct {
    Environment variables;
    Hosts hosts;
  } cases[] = {
      {{}, {{"n1", 1}, {"n2", 1}}},
      {{{"SLURM_TASKS_PER_NODE", "2,1"}}, {{"n1", 2}, {"n2", 1}}},
      {{{"SLURM_TASKS_PER_NODE", "2(x2)"}, {"SLURM_NTASKS_PER_NODE", "7"}}, {{"n1", 2}, {"n2", 2}}},
      {{{"SLURM_NTASKS_PER_NODE", "3"}, {"SLURM_CPUS_ON_NODE", "8"}}, {{"n1", 3}, {"n2", 3}}},
      {{{"SLURM_JOB_CPUS_PER_NODE", "8,4"}, {"SLURM_CPUS_ON_NODE", "2"}}, {{"n1", 8}, {"n2", 4}}},
      {{{"SLURM_JOB_CPUS_PER_NODE", "8,4"}, {"SLURM_CPUS_PER_TASK", "3"}}, {{"n1", 2}, {"n2", 1}}},
      {{{"SLURM_CPUS_ON_NODE", "8"}, {"SLURM_CPUS_PER_TASK", "2"}}, {{"n1", 4}, {"n2", 4}}},
      {{{"SLURM_CPUS_ON_NODE", "2"}, {"SLURM_CPUS_PER_TASK", "4"}}, {{"n1", 1}, {"n2", 1}}},
      {{{"SLURM_TASKS_PER_NODE", ""}, {"SLURM_CPUS_ON_NODE", "2"}}, {{"n1", 2}, {"n2", 2}}},
  };
  for (const auto& example : cases) {
    Environment environment = example.variables;
    environment["SLURM_JOB_NODELIST"] = "n[1-2]";
    EXPECT_EQ(slurm_hosts(lookup_in(environment), no_scontrol), example.hosts);
  }
}

TEST(SlurmHosts, ScontrolIsAskedFirst) {
  const Environment environment = {{"SLURM_NODELIST", "odd{form}"}};
  Names asked;
  const auto scontrol = [&](const std::string& list) {
    asked.push_back(list);
    return std::optional(Names{"x", "y"});
  };
  EXPECT_EQ(slurm_hosts(lookup_in(environment), scontrol), (Hosts{{"x", 1}, {"y", 1}}));
  EXPECT_EQ(asked, Names{"odd{form}"});
}

TEST(SlurmHosts, WhatLooksLikeAnOptionIsNotHandedToScontrol) {
  const Environment environment = {{"SLURM_NODELIST", "--help"}};
  const auto scontrol = [](const std::string&) -> std::optional<Names> {
    ADD_FAILURE() << "was asked";
    return std::nullopt;
  };
  EXPECT_THAT(usage_error_of([&] { slurm_hosts(lookup_in(environment), scontrol); }), HasSubstr("is no host name"));
}

TEST(SlurmHosts, ErrorsNameTheVariable) {
  const auto error_of = [](const Environment& environment, const NodeListReader& reader) {
    return usage_error_of([&] { slurm_hosts(lookup_in(environment), reader); });
  };
  EXPECT_EQ(
      error_of({{"SLURM_JOB_NODELIST", "n[2-1]"}}, no_scontrol),
      "SLURM_JOB_NODELIST='n[2-1]' of this Slurm allocation: the range 2-1 runs backwards; give the hosts by -H, or "
      "pass --no-slurm");
  EXPECT_THAT(
      error_of({{"SLURM_NODELIST", "n1"}, {"SLURM_TASKS_PER_NODE", "1(x2)"}}, no_scontrol),
      StartsWith("SLURM_TASKS_PER_NODE='1(x2)' of this Slurm allocation: it has numbers for more than the 1 nodes"));
  EXPECT_THAT(error_of({{"SLURM_NODELIST", "n1"}, {"SLURM_NTASKS_PER_NODE", "many"}}, no_scontrol),
              StartsWith("SLURM_NTASKS_PER_NODE='many' of this Slurm allocation: 'many' is not a whole number"));
  EXPECT_THAT(
      error_of({{"SLURM_NODELIST", "n1"}}, [](const std::string&) { return std::optional(Names{"$(touch x)"}); }),
      HasSubstr("'$(touch x)' is no host name"));
}

class SlurmRequest : public testing::Test {
 protected:
  RequestedHosts requested() { return requested_hosts(options, lookup_in(environment), no_scontrol); }

  Environment environment = {
      {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "2(x2)"}};
  Options options;
};

TEST_F(SlurmRequest, TheAllocationCountsWhenNothingElseIsSaid) {
  EXPECT_EQ(requested(), (RequestedHosts{HostSource::slurm, {{"n1", 2}, {"n2", 2}}}));
}

TEST_F(SlurmRequest, OldNamesCountToo) {
  environment = {{"SLURM_JOBID", "7"}, {"SLURM_NODELIST", "n1"}};
  EXPECT_EQ(requested(), (RequestedHosts{HostSource::slurm, {{"n1", 1}}}));
}

TEST_F(SlurmRequest, FlagsWinOverTheAllocation) {
  options.hosts = "a:3,b";
  options.slots_per_host = 2;
  EXPECT_EQ(requested(), (RequestedHosts{HostSource::list, {{"a", 3}, {"b", 2}}}));
  options.hosts.reset();
  options.hostfile = FEDRUN_SOURCE_DIR "/hostfile.example";
  EXPECT_EQ(requested().source, HostSource::file);
  EXPECT_EQ(requested().hosts.back(), (Host{"node3.example.org", 2}));
  options.hostfile.reset();
  options.use_slurm = false;
  EXPECT_EQ(requested(), (RequestedHosts{HostSource::this_machine, {}}));
}

TEST_F(SlurmRequest, HalfAnAllocationIsNone) {
  for (const char* name : {"SLURM_JOB_ID", "SLURM_JOB_NODELIST"}) {
    const std::string value = environment[name];
    environment[name] = "";
    EXPECT_EQ(requested(), RequestedHosts{}) << name;
    environment[name] = value;
  }
}

}  // namespace
}  // namespace fedrun::launcher
