// What flags and Open MPI's own variables mean for the way to other hosts and for their checks.
#include <fedrun/launcher/prepare_hosts.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "support/error_text.h"

namespace fedrun::launcher {
namespace {

using test::usage_error_of;
using testing::HasSubstr;

RunEnv::Lookup variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}

Options flags(std::vector<std::string> words) {
  words.insert(words.begin(), "check");
  return parse_options(words);
}

const CheckRow& row_of(const PreflightResult& result, std::string_view check) {
  const auto found =
      std::find_if(result.rows.begin(), result.rows.end(), [&](const CheckRow& row) { return row.check == check; });
  if (found == result.rows.end()) throw std::runtime_error("no such row");
  return *found;
}

TEST(PrepareHosts, TheWayToOtherHosts) {
  EXPECT_EQ(remote_shell({}, variables({})).agent, "ssh");
  EXPECT_EQ(remote_shell({}, variables({{"PATH", "/bin"}, {"OMPI_MCA_plm_rsh_agent", "sh -x"}})).agent, "sh -x");
  const RemoteShell shell = remote_shell(flags({"--ssh-port=2222", "--ssh-identity-file=key"}), variables({}));
  EXPECT_EQ(shell.port, 2222);
  EXPECT_EQ(shell.identity_file, "key");
}

TEST(PrepareHosts, ChecksThisMachineWithoutHosts) {
  const PreflightResult result = check_hosts({}, {}, variables({}));
  EXPECT_EQ(row_of(result, "clock").verdict, Verdict::ok);
  EXPECT_EQ(row_of(result, "clock").host, "localhost");
  EXPECT_EQ(row_of(result, "fedrun").verdict, Verdict::ok);  // this test plays its part
  EXPECT_EQ(row_of(result, "network").what, "not needed: all is on one machine");
}

TEST(PrepareHosts, TheNetworkMayComeFromOpenMpisVariable) {
  const auto named = [](const char* value) { return variables({{"OMPI_MCA_btl_tcp_if_include", value}}); };
  EXPECT_EQ(row_of(check_hosts({}, {}, named("127.0.0.0/8")), "network").what, "127.0.0.0/8, as you asked");
  EXPECT_EQ(row_of(check_hosts({}, {}, named("none7")), "network").verdict, Verdict::failed);
  EXPECT_THAT(usage_error_of([&] { check_hosts({}, {}, named("$(touch x)")); }),
              HasSubstr("OMPI_MCA_btl_tcp_if_include: '$(touch x)'"));
  const Options options = flags({"--network-interfaces=127.0.0.0/8"});
  EXPECT_EQ(row_of(check_hosts(options, {}, named("none7")), "network").verdict, Verdict::ok);
}

TEST(PrepareHosts, GpusAreExpectedWithTheDeviceCuda) {
  const auto has_row = [](const PreflightResult& result) {
    return std::any_of(result.rows.begin(), result.rows.end(), [](const CheckRow& row) { return row.check == "GPUs"; });
  };
  EXPECT_TRUE(has_row(check_hosts({}, {}, variables({{"FEDRUN_DEVICE", "cuda"}}))));
  const Options options = flags({"--device=cuda"});
  EXPECT_TRUE(has_row(check_hosts(options, {}, variables({{"FEDRUN_DEVICE", "cpu"}}))));
}

TEST(PrepareHosts, WhereHostsAreRemembered) {
  EXPECT_EQ(host_cache_directory(variables({{"HOME", "/home/u"}})), "/home/u/.cache/fedrun/hosts");
  EXPECT_EQ(host_cache_directory(variables({{"HOME", "/home/u"}, {"XDG_CACHE_HOME", "/c"}})), "/c/fedrun/hosts");
  EXPECT_EQ(host_cache_directory(variables({{"HOME", "/home/u"}, {"XDG_CACHE_HOME", ""}})),
            "/home/u/.cache/fedrun/hosts");
  EXPECT_EQ(host_cache_directory(variables({{"HOME", "here"}, {"XDG_CACHE_HOME", "there"}})), "");
}

TEST(PrepareHosts, CheckCopiesNothing) {
  const Options options = flags({"--sync=."});
  EXPECT_THAT(usage_error_of([&] { check_hosts(options, {}, variables({})); }), HasSubstr("check copies nothing"));
}

}  // namespace
}  // namespace fedrun::launcher
