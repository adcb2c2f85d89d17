// Reads command lines by table: which words are fedrun's, which are the program's, and what each error says.
#include <fedrun/core/error.h>
#include <fedrun/launcher/options.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fedrun::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

Options parse(const std::vector<std::string>& arguments) { return parse_options(arguments); }

std::string error_of(const std::vector<std::string>& arguments) {
  try {
    parse(arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Options, EverythingFromTheProgramOnIsThePrograms) {
  const Options options = parse({"-np", "4", "-H", "ip1:2,ip2:2", "./train", "--lr", "0.1", "-np", "9", "--help"});
  EXPECT_EQ(options.action, Action::launch);
  EXPECT_EQ(options.ranks, 4);
  EXPECT_EQ(options.hosts, "ip1:2,ip2:2");
  EXPECT_THAT(options.program, ElementsAre("./train", "--lr", "0.1", "-np", "9", "--help"));
}

TEST(Options, HostileArgumentsStayAsTheyAre) {
  const std::vector<std::string> program = {"./train", "a b", "'\"", ";", "$(touch x)", "", "new\nline", "--", "-x"};
  EXPECT_EQ(parse(program).program, program);
}

TEST(Options, TwoDashesEndTheOptions) {
  EXPECT_THAT(parse({"-np", "2", "--", "./train", "--", "x"}).program, ElementsAre("./train", "--", "x"));
}

TEST(Options, EverySpellingOfTheNumberOfRanks) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"-np", "3"}, {"-n", "3"}, {"--np", "3"}, {"--np=3"}, {"--num-proc", "3"}, {"--num-proc=3"}}) {
    std::vector<std::string> arguments = words;
    arguments.emplace_back("p");
    EXPECT_EQ(parse(arguments).ranks, 3) << words[0];
    EXPECT_THAT(parse(arguments).program, ElementsAre("p")) << words[0];
  }
  EXPECT_EQ(parse({"p"}).ranks, std::nullopt);
}

TEST(Options, EverySpellingOfTheHosts) {
  for (const std::string name : {"-H", "--host", "--hosts"}) EXPECT_EQ(parse({name, "a:2", "p"}).hosts, "a:2") << name;
  EXPECT_EQ(parse({"--hosts=a:2,b", "p"}).hosts, "a:2,b");
  EXPECT_EQ(parse({"--hostfile", "my hosts", "p"}).hostfile, "my hosts");
}

TEST(Options, SettingsBecomeVariables) {
  const Options options = parse({"--log-level", "debug", "--threads=4", "--backend", "mpi", "--device", "cpu", "p"});
  EXPECT_THAT(options.settings, ElementsAre(Pair("FEDRUN_LOG_LEVEL", "debug"), Pair("FEDRUN_THREADS", "4"),
                                            Pair("FEDRUN_BACKEND", "mpi"), Pair("FEDRUN_DEVICE", "cpu")));
}

TEST(Options, FieldsByTable) {
  const struct {
    std::vector<std::string> arguments;
    bool (*holds)(const Options& options);
  } cases[] = {
      {{"--slots-per-host", "4"}, [](const Options& o) { return o.slots_per_host == 4; }},
      {{"--no-slurm"}, [](const Options& o) { return !o.use_slurm; }},
      {{"-p", "2222"}, [](const Options& o) { return o.ssh_port == 2222; }},
      {{"--ssh-port=65535"}, [](const Options& o) { return o.ssh_port == 65535; }},
      {{"-i", "my key"}, [](const Options& o) { return o.ssh_identity_file == "my key"; }},
      {{"--ssh-identity-file", "k"}, [](const Options& o) { return o.ssh_identity_file == "k"; }},
      {{"--network-interfaces", "eth0"}, [](const Options& o) { return o.network_interfaces == "eth0"; }},
      {{"--network-interface", "ib0"}, [](const Options& o) { return o.network_interfaces == "ib0"; }},
      {{"--sync", "a", "--sync", "b"},
       [](const Options& o) {
         return o.sync == std::vector<std::string>{"a", "b"};
       }},
      {{"--mpi-args", "--mca a 'b c'", "--mpi-args=-d"},
       [](const Options& o) {
         return o.mpi_arguments == std::vector<std::string>{"--mca", "a", "b c", "-d"};
       }},
      {{"--gpu-mapping", "g.yaml"}, [](const Options& o) { return o.gpu_mapping_file == "g.yaml"; }},
      {{"--gpu-mapping-file", "g.yaml", "--gpu-mapping-key", "k"},
       [](const Options& o) { return o.gpu_mapping_file == "g.yaml" && o.gpu_mapping_key == "k"; }},
      {{"--bind", "core"}, [](const Options& o) { return o.binding == Binding::core; }},
      {{"--bind", "socket"}, [](const Options& o) { return o.binding == Binding::socket; }},
      {{"--bind", "none"}, [](const Options& o) { return o.binding == Binding::none; }},
      {{"--binding-args", "-bind-to socket"},
       [](const Options& o) {
         return o.mpi_arguments == std::vector<std::string>{"-bind-to", "socket"};
       }},
      {{"--disable-cache"}, [](const Options& o) { return !o.use_cache; }},
      {{"--output-dir", "d"}, [](const Options& o) { return o.output_directory == "d"; }},
      {{"--output-filename", "d"}, [](const Options& o) { return o.output_directory == "d"; }},
      {{"--timestamps"}, [](const Options& o) { return o.timestamps; }},
      {{"--prefix-output-with-timestamp"}, [](const Options& o) { return o.timestamps; }},
      {{"--no-prefix"}, [](const Options& o) { return !o.prefix; }},
      {{"--start-timeout", "30"}, [](const Options& o) { return o.start_timeout == std::chrono::seconds(30); }},
      {{"--timeout", "86401"}, [](const Options& o) { return o.timeout == std::chrono::seconds(86401); }},
      {{"--debug-rank", "3"}, [](const Options& o) { return o.debug_rank == 3; }},
      {{"--debug-rank", "0", "--debug-with", "gdb"}, [](const Options& o) { return o.debugger == Debugger::gdb; }},
      {{"-hostfile", "f"}, [](const Options& o) { return o.hostfile == "f"; }},
      {{"--mpi"}, [](const Options& o) { return o.action == Action::launch; }},
  };
  for (const auto& example : cases) {
    std::vector<std::string> arguments = example.arguments;
    arguments.emplace_back("p");
    EXPECT_TRUE(example.holds(parse(arguments))) << testing::PrintToString(arguments);
    EXPECT_FALSE(example.holds(parse({"p"})) && example.arguments[0] != "--mpi" && example.arguments.back() != "none")
        << testing::PrintToString(arguments) << " is the default";
  }
}

TEST(Options, HorovodsNamesOfSettings) {
  const struct {
    std::vector<std::string> arguments;
    std::vector<std::pair<std::string, std::string>> settings;
  } cases[] = {
      {{"--timeline-filename", "t.json"}, {{"FEDRUN_TIMELINE", "t.json"}}},
      {{"--log-level", "WARNING"}, {{"FEDRUN_LOG_LEVEL", "warn"}}},
      {{"--log-level", "TRACE"}, {{"FEDRUN_LOG_LEVEL", "debug"}}},
      {{"--log-level", "FATAL"}, {{"FEDRUN_LOG_LEVEL", "error"}}},
      {{"--stall-check-warning-time-seconds", "5"}, {{"FEDRUN_STALL_WARN_SECONDS", "5"}}},
      {{"--stall-check-shutdown-time-seconds", "6"}, {{"FEDRUN_STALL_ABORT_SECONDS", "6"}}},
      {{"--no-stall-check"}, {{"FEDRUN_STALL_WARN_SECONDS", "0"}, {"FEDRUN_STALL_ABORT_SECONDS", "0"}}},
      {{"--stall-check"}, {}},
      {{"--peer-memory", "off"}, {{"FEDRUN_PEER_MEMORY", "off"}}},
  };
  for (const auto& example : cases) {
    std::vector<std::string> arguments = example.arguments;
    arguments.emplace_back("p");
    EXPECT_EQ(parse(arguments).settings, example.settings) << testing::PrintToString(arguments);
  }
}

TEST(Options, CheckIsAWordInFront) {
  EXPECT_EQ(parse({"check"}).action, Action::check);
  const Options options = parse({"check", "-H", "a:2", "./train", "-np", "7"});
  EXPECT_EQ(options.action, Action::check);
  EXPECT_EQ(options.hosts, "a:2");
  EXPECT_THAT(options.program, ElementsAre("./train", "-np", "7"));
  EXPECT_THAT(parse({"check", "check"}).program, ElementsAre("check"));
  EXPECT_EQ(parse({"check", "--help"}).action, Action::show_help);

  EXPECT_EQ(parse({"--", "check"}).action, Action::launch);
  EXPECT_THAT(parse({"--", "check"}).program, ElementsAre("check"));
  EXPECT_EQ(parse({"-np", "2", "check"}).action, Action::launch);
  EXPECT_EQ(parse({"./check"}).action, Action::launch);
}

TEST(Options, PassedVariablesKeepTheirText) {
  EXPECT_THAT(parse({"-x", "A", "-x", "B=1,2;$(x)=y", "p"}).pass, ElementsAre("A", "B=1,2;$(x)=y"));
}

TEST(Options, Switches) {
  EXPECT_FALSE(parse({"p"}).verbose);
  EXPECT_TRUE(parse({"--verbose", "p"}).verbose);
  EXPECT_FALSE(parse({"p"}).dry_run);
  EXPECT_TRUE(parse({"--dry-run", "p"}).dry_run);
}

TEST(Options, QuestionsNeedNoProgram) {
  EXPECT_EQ(parse({"--help"}).action, Action::show_help);
  EXPECT_EQ(parse({"-h"}).action, Action::show_help);
  EXPECT_EQ(parse({"--version"}).action, Action::show_version);
  EXPECT_EQ(parse({"--check-build"}).action, Action::check_build);
  EXPECT_THAT(parse({"--check-build"}).program, IsEmpty());
  EXPECT_EQ(parse({"--man-page"}).action, Action::man_page);
  EXPECT_EQ(parse({"--completion", "zsh"}).action, Action::completion);
  EXPECT_EQ(parse({"--completion", "zsh"}).completion_shell, "zsh");
}

TEST(Options, ErrorsSayWhatIsWrong) {
  const struct {
    std::vector<std::string> arguments;
    const char* message;
  } cases[] = {
      {{}, "which program shall run? For example: fedrun -np 2 ./train --lr 0.1"},
      {{"-np", "2"}, "which program shall run? For example: fedrun -np 2 ./train --lr 0.1"},
      {{"-np", "0", "p"}, "-np: '0' is not a whole number from 1 to 65536"},
      {{"-np", "-1", "p"}, "-np: '-1' is not a whole number from 1 to 65536"},
      {{"-np", "x", "p"}, "-np: 'x' is not a whole number from 1 to 65536"},
      {{"--np=2x", "p"}, "--np: '2x' is not a whole number from 1 to 65536"},
      {{"-np"}, "-np needs a value: -np N"},
      {{"-np4", "p"},
       "unknown option '-np4': did you mean -np? Otherwise: options of your program go after its name: fedrun -np 2 "
       "./train -np4"},
      {{"--lr", "1", "p"},
       "unknown option '--lr'; options of your program go after its name: fedrun -np 2 ./train --lr"},
      {{"-", "p"}, "unknown option '-'; options of your program go after its name: fedrun -np 2 ./train -"},
      {{"--verbose=1", "p"}, "--verbose takes no value"},
      {{"--threads", "0", "p"}, "--threads: '0' is not a whole number from 1 to 1024"},
      {{"--log-level", "loud", "p"}, "--log-level: unknown log level 'loud': use debug, info, warn, error or off"},
      {{"--device", "tpu", "p"}, "--device: 'tpu' is not one of auto, cpu, cuda"},
      {{"-H", "a", "--hostfile", "f", "p"}, "give -H or --hostfile, not both"},
      {{"--bind", "core", "--binding-args", "-bind-to socket", "p"}, "give --bind or --binding-args, not both"},
      {{"--stall-check", "--no-stall-check", "p"}, "give --stall-check or --no-stall-check, not both"},
      {{"--gpu-mapping-key", "k", "p"}, "--gpu-mapping-key does nothing without --gpu-mapping"},
      {{"--gpu-mapping", "f", "--gpu-mapping-key", "", "p"}, "--gpu-mapping-key: an empty text is no name"},
      {{"--debug-with", "gdb", "p"}, "--debug-with does nothing without --debug-rank"},
      {{"--debug-rank", "0", "--debug-with", "lldb", "p"}, "--debug-with: 'lldb' is not one of gdbserver, gdb"},
      {{"-np", "2", "--debug-rank", "2", "p"}, "--debug-rank 2: the run has the ranks 0 to 1"},
      {{"--debug-rank", "-1", "p"}, "--debug-rank: '-1' is not a whole number from 0 to 65535"},
      {{"-p", "0", "p"}, "-p: '0' is not a whole number from 1 to 65535"},
      {{"--ssh-port", "65536", "p"}, "--ssh-port: '65536' is not a whole number from 1 to 65535"},
      {{"--slots-per-host", "0", "p"}, "--slots-per-host: '0' is not a whole number from 1 to 65536"},
      {{"--start-timeout", "0", "p"}, "--start-timeout: '0' is not a whole number from 1 to 86400"},
      {{"--timeout", "1.5", "p"}, "--timeout: '1.5' is not a whole number from 1 to 31622400"},
      {{"--output-dir", "", "p"}, "--output-dir: an empty text is no path"},
      {{"--sync=", "p"}, "--sync: an empty text is no path"},
      {{"--completion", "fish"}, "--completion: 'fish' is not one of bash, zsh"},
      {{"--gpu-mapping", "f", "--device", "cpu", "p"},
       "--gpu-mapping says which GPU each rank gets, and --device cpu that it gets none: leave one out"},
      {{"--bind", "numa", "p"}, "--bind: 'numa' is not one of core, socket, none"},
      {{"--network-interfaces", "eth0,", "p"},
       "--network-interfaces: '' is neither an interface such as eth0 nor a network such as 10.0.0.0/8"},
      {{"--cycle-time-ms", "5", "p"},
       "--cycle-time-ms: fedrun has no polling thread, so there is no cycle; leave it out"},
      {{"--cycle-time-ms=5", "p"}, "--cycle-time-ms: fedrun has no polling thread, so there is no cycle; leave it out"},
      {{"--hostfil", "f", "p"},
       "unknown option '--hostfil': did you mean --hostfile? Otherwise: options of your program go after its name: "
       "fedrun -np 2 "
       "./train --hostfil"},
      {{"--", "-p"}, "'-p' is no name for a program; if it is one, write ./-p"},
      {{""}, "'' is no name for a program; if it is one, write ./"},
  };
  for (const auto& example : cases) {
    EXPECT_EQ(error_of(example.arguments), example.message) << testing::PrintToString(example.arguments);
  }
}

}  // namespace
}  // namespace fedrun::launcher
