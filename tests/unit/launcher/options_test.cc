// Reads command lines by table: which words are fedrun's, which are the program's, and what each error says.
#include <fedrun/core/error.h>
#include <fedrun/core/run_env.h>
#include <fedrun/launcher/options.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fedrun::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
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
      {{"-np4", "p"}, "unknown option '-np4'; options of your program go after its name: fedrun -np 2 ./train -np4"},
      {{"--lr", "1", "p"},
       "unknown option '--lr'; options of your program go after its name: fedrun -np 2 ./train --lr"},
      {{"-", "p"}, "unknown option '-'; options of your program go after its name: fedrun -np 2 ./train -"},
      {{"--verbose=1", "p"}, "--verbose takes no value"},
      {{"--threads", "0", "p"}, "--threads: '0' is not a whole number from 1 to 1024"},
      {{"--log-level", "loud", "p"}, "--log-level: unknown log level 'loud': use debug, info, warn, error or off"},
      {{"--device", "tpu", "p"}, "--device: 'tpu' is not one of auto, cpu, cuda"},
      {{"-H", "a", "--hostfile", "f", "p"}, "give the hosts by -H or by --hostfile, not by both"},
      {{"--", "-p"}, "'-p' is no name for a program; if it is one, write ./-p"},
      {{""}, "'' is no name for a program; if it is one, write ./"},
  };
  for (const auto& example : cases) {
    EXPECT_EQ(error_of(example.arguments), example.message) << testing::PrintToString(example.arguments);
  }
}

TEST(Options, HelpShowsEveryFlagAndVariable) {
  const std::string help = help_text();
  EXPECT_THAT(help, HasSubstr("  -np, -n, --np, --num-proc N     number of ranks"));
  EXPECT_THAT(help, HasSubstr("  --threads N                     compute threads per rank"));
  EXPECT_THAT(help, HasSubstr("\nWhere to run:\n"));
  for (const RunVariable& variable : run_variables()) {
    EXPECT_THAT(help, HasSubstr(variable.name));
    EXPECT_THAT(help, HasSubstr(variable.meaning));
  }
}

}  // namespace
}  // namespace fedrun::launcher
