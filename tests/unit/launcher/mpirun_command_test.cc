// The exact mpirun command for each kind of launch, and the variables that the ranks get.
#include <fedrun/core/error.h>
#include <fedrun/launcher/mpirun_command.h>
#include <fedrun/launcher/rank_environment.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <utility>

namespace fedrun::launcher {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

constexpr const char* one_host = "--mca pml ob1 --mca btl self,vader,tcp ";
constexpr const char* patient = "--mca mpi_yield_when_idle 1 ";

constexpr const char* kept = "fedrun keep-rank -- ";

Launch launch(Placement placement, const std::vector<std::string>& program = {"p"}) {
  Launch result;
  result.placement = std::move(placement);
  result.fedrun = "fedrun";
  result.keeper.program = program;
  return result;
}

Launch with(Launch result, const std::function<void(Launch&)>& change) {
  change(result);
  return result;
}

TEST(MpirunCommand, ByTable) {
  const struct {
    const char* what;
    Launch launch;
    std::string command;
  } cases[] = {
      {"this machine", launch({2, {}}, {"./train", "--lr", "0.1"}),
       std::string("mpirun -np 2 --oversubscribe --bind-to none ") + one_host + patient + kept + "./train --lr 0.1"},
      {"this machine by name", launch({3, {{"localhost", 3}}}),
       std::string("mpirun -np 3 --host localhost,localhost,localhost --map-by seq --bind-to none ") + one_host +
           patient + kept + "p"},
      {"root", with(launch({1, {}}), [](Launch& l) { l.as_root = true; }),
       std::string("mpirun --allow-run-as-root -np 1 --oversubscribe --bind-to none ") + one_host + patient + kept +
           "p"},
      {"several hosts", launch({4, {{"far", 2}, {"10.0.0.2", 2}}}),
       std::string("mpirun -np 4 --host far,far,10.0.0.2,10.0.0.2 --map-by seq --bind-to none ") + patient + kept +
           "p"},
      {"domain names", launch({2, {{"a.example.org", 1}, {"b", 1}}}),
       std::string("mpirun -np 2 --host a.example.org,b --map-by seq --bind-to none --mca orte_keep_fqdn_hostnames "
                   "1 ") +
           patient + kept + "p"},
      {"the user's own parameters",
       with(launch({2, {}}),
            [](Launch& l) {
              l.mca_parameters = {"pml", "btl", "mpi_yield_when_idle"};
            }),
       std::string("mpirun -np 2 --oversubscribe --bind-to none ") + kept + "p"},
      {"port, key and network",
       with(launch({2, {{"a", 1}, {"b", 1}}}),
            [](Launch& l) {
              l.remote_parameters = {{"plm_rsh_args", "-p 2222"}};
              l.network = "10.0.0.0/24";
            }),
       std::string("mpirun -np 2 --host a,b --map-by seq --bind-to none --mca plm_rsh_args '-p 2222' "
                   "--mca btl_tcp_if_include 10.0.0.0/24 --mca oob_tcp_if_include 10.0.0.0/24 ") +
           patient + kept + "p"},
      {"a Slurm allocation",
       with(launch({2, {{"a", 1}, {"b", 1}}}),
            [](Launch& l) {
              l.hosts_from_slurm = true;
              l.remote_parameters = {{"plm_rsh_args", "-p 2222"}};
            }),
       std::string("mpirun -np 2 --host a,b --map-by seq --bind-to none ") + patient + kept + "p"},
      {"other hosts than those of the allocation",
       with(launch({1, {{"a", 1}}}), [](Launch& l) { l.ignores_slurm = true; }),
       std::string("mpirun -np 1 --host a --map-by seq --bind-to none --mca plm rsh --mca ras '^slurm' ") + one_host +
           patient + kept + "p"},
      {"arguments for mpirun",
       with(launch({1, {}}),
            [](Launch& l) {
              l.mpi_arguments = {"--report-bindings", "a b"};
            }),
       std::string("mpirun -np 1 --oversubscribe --bind-to none ") + one_host + patient + "--report-bindings 'a b' " +
           kept + "p"},
      {"variables",
       with(launch({2, {{"a", 1}, {"b", 1}}}),
            [](Launch& l) {
              l.variables = {{"A", "1 2"}, {"PATH", std::nullopt}};
            }),
       std::string("A='1 2' mpirun -np 2 --host a,b --map-by seq --bind-to none ") + patient + "-x A -x PATH " + kept +
           "p"},
  };
  for (const auto& example : cases) {
    EXPECT_EQ(to_shell(make_mpirun_command(example.launch)), example.command) << example.what;
  }
}

TEST(MpirunCommand, ArgumentsStayAsTheyAre) {
  const std::vector<std::string> program = {"./train", "a b",       "'\"", ";",  "$(touch x)",
                                            "",        "new\nline", "-np", "-x", "::"};
  const std::vector<std::string> arguments = make_mpirun_command(launch({2, {{"a", 1}, {"b", 1}}}, program)).arguments;
  EXPECT_EQ(std::vector<std::string>(arguments.end() - static_cast<std::ptrdiff_t>(program.size()), arguments.end()),
            program);
}

TEST(MpirunCommand, ShellTextQuotesWhatAShellWouldRead) {
  const MpirunCommand command = {.environment = {{"A", "x;y"}},
                                 .arguments = {"mpirun", "", "a b", "it's", "$(x)", "--a=b"}};
  EXPECT_EQ(to_shell(command), "A='x;y' mpirun '' 'a b' 'it'\\''s' '$(x)' --a=b");
}

class RankEnvironment : public testing::Test {
 protected:
  std::vector<PassedVariable> variables(const std::vector<int>& gpus = {}) {
    const auto lookup = [this](const char* name) -> const char* {
      const auto found = environment.find(name);
      return found == environment.end() ? nullptr : found->second.c_str();
    };
    return rank_environment(options, placement, 80, lookup, gpus);
  }

  std::map<std::string, std::string> environment = {{"PATH", "/bin"}, {"HOME", "/home/me"}};
  Options options;
  Placement placement = {2, {}};
};

TEST_F(RankEnvironment, TerminalWidthAlwaysComesFromTheLauncher) {
  environment["FEDRUN_TERMINAL_COLUMNS"] = "20";
  EXPECT_THAT(variables(), ElementsAre(PassedVariable{"FEDRUN_TERMINAL_COLUMNS", "80"}));
}

TEST_F(RankEnvironment, SearchPathsGoToOtherHosts) {
  EXPECT_THAT(variables(), Not(Contains(PassedVariable{"PATH", std::nullopt})));
  placement.hosts = {{"far", 2}};
  EXPECT_THAT(variables(),
              ElementsAre(PassedVariable{"PATH", std::nullopt}, PassedVariable{"FEDRUN_TERMINAL_COLUMNS", "80"}));
  environment["LD_LIBRARY_PATH"] = "/lib";
  EXPECT_THAT(variables(), Contains(PassedVariable{"LD_LIBRARY_PATH", std::nullopt}));
}

TEST_F(RankEnvironment, NcclUsesTheInterfacesThatOpenMpiUses) {
  const auto nccl = [&] {
    for (const PassedVariable& variable : variables()) {
      if (variable.name == "NCCL_SOCKET_IFNAME") return variable.value.value_or("as here");
    }
    return std::string("not told");
  };
  EXPECT_EQ(nccl(), "not told");
  options.network_interfaces = "10.0.0.0/8,eth0";
  EXPECT_EQ(nccl(), "not told");
  options.network_interfaces = "eth0,ib0";
  EXPECT_EQ(nccl(), "=eth0,ib0");
  environment["NCCL_SOCKET_IFNAME"] = "^docker";
  EXPECT_EQ(nccl(), "not told");
  options.pass = {"NCCL_SOCKET_IFNAME=lo"};
  EXPECT_EQ(nccl(), "lo");
}

TEST_F(RankEnvironment, FlagsWinOverTheEnvironment) {
  environment["FEDRUN_THREADS"] = "2";
  environment["FEDRUN_LOG_LEVEL"] = "info";
  options.settings = {{"FEDRUN_THREADS", "4"}};
  EXPECT_THAT(variables(), AllOf(Contains(PassedVariable{"FEDRUN_THREADS", "4"}),
                                 Contains(PassedVariable{"FEDRUN_LOG_LEVEL", std::nullopt})));
}

TEST_F(RankEnvironment, GpusComeFromTheMappingOnly) {
  EXPECT_THAT(variables({0, 1}), Contains(PassedVariable{"FEDRUN_GPU_OF_RANK", "0,1"}));
  environment["FEDRUN_GPU_OF_RANK"] = "5";  // of a run that this fedrun is a rank of
  EXPECT_THAT(variables(), Contains(PassedVariable{"FEDRUN_GPU_OF_RANK", ""}));
  EXPECT_THAT(variables({0, 1}), Contains(PassedVariable{"FEDRUN_GPU_OF_RANK", "0,1"}));
}

TEST_F(RankEnvironment, PassedByName) {
  options.pass = {"HOME", "A=1=2;$(x)", "B=", "A=3"};
  EXPECT_THAT(variables(), ElementsAre(PassedVariable{"HOME", std::nullopt}, PassedVariable{"A", "3"},
                                       PassedVariable{"B", ""}, PassedVariable{"FEDRUN_TERMINAL_COLUMNS", "80"}));
}

TEST_F(RankEnvironment, ErrorsComeBeforeTheStart) {
  const struct {
    std::string pass;
    const char* message;
  } cases[] = {
      {"UNSET", "-x UNSET: the variable is not set here; set it, or write -x UNSET=VALUE"},
      {"", "-x: '' is no name for an environment variable"},
      {"=1", "-x: '' is no name for an environment variable"},
      {"A B=1", "-x: 'A B' is no name for an environment variable"},
      {"1A=1", "-x: '1A' is no name for an environment variable"},
      {"FEDRUN_THREADS=many", "environment variable FEDRUN_THREADS='many' is not valid"},
  };
  for (const auto& example : cases) {
    options.pass = {example.pass};
    try {
      variables();
      ADD_FAILURE() << example.pass;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith(example.message));
    }
  }
}

}  // namespace
}  // namespace fedrun::launcher
