// The table of flags is in order, --help shows all of it, and what other launchers' users type is answered.
#include <fedrun/core/run_env.h>
#include <fedrun/launcher/completion.h>
#include <fedrun/launcher/flag_table.h>
#include <fedrun/launcher/help.h>
#include <fedrun/launcher/man_page.h>
#include <fedrun/launcher/nearest_name.h>
#include <fedrun/launcher/refused_flags.h>
#include <fedrun/launcher/split_list.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace fedrun::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(FlagTable, NoNameMeansTwoThings) {
  std::set<std::string_view> names;
  for (const Flag& flag : flag_table()) {
    for (const std::string_view name : all_names(flag)) {
      EXPECT_TRUE(names.insert(name).second) << name;
      EXPECT_EQ(find_flag(name), &flag) << name;
      EXPECT_EQ(find_refused_flag(name), nullptr) << name;
    }
  }
  for (const RefusedFlag& flag : refused_flags()) {
    for (const std::string_view name : split_list(flag.names, ' ')) EXPECT_TRUE(names.insert(name).second) << name;
  }
}

TEST(FlagTable, RowsAreComplete) {
  for (const Flag& flag : flag_table()) {
    EXPECT_NE(flag.variable == nullptr, flag.apply == nullptr) << flag.names;
    EXPECT_NE(help_of(flag), "") << flag.names;
    EXPECT_TRUE(flag.needs == nullptr || find_flag(flag.needs) != nullptr) << flag.names;
  }
}

TEST(FlagTable, EverySettingOfTheRanksHasAFlag) {
  const std::set<std::string> not_for_users = {"FEDRUN_GPU_OF_RANK", "FEDRUN_PROGRESS_DESCRIPTOR",
                                               "FEDRUN_TERMINAL_COLUMNS", "FEDRUN_TEST_DATA"};
  std::set<std::string> with_flag;
  for (const Flag& flag : flag_table()) {
    if (flag.variable != nullptr) with_flag.insert(variable_of(flag).name);
  }
  for (const RunVariable& variable : run_variables()) {
    EXPECT_NE(with_flag.contains(variable.name), not_for_users.contains(variable.name)) << variable.name;
  }
}

// As horovodrun --help of version 0.28.1 lists them.
TEST(FlagTable, EveryFlagOfHorovodrunIsKnown) {
  for (const char* name : {"-v",
                           "--version",
                           "-np",
                           "--num-proc",
                           "-cb",
                           "--check-build",
                           "--disable-cache",
                           "--start-timeout",
                           "--network-interfaces",
                           "--output-filename",
                           "--verbose",
                           "-p",
                           "--ssh-port",
                           "-i",
                           "--ssh-identity-file",
                           "--fusion-threshold-mb",
                           "--cycle-time-ms",
                           "--cache-capacity",
                           "--hierarchical-allreduce",
                           "--no-hierarchical-allreduce",
                           "--hierarchical-allgather",
                           "--no-hierarchical-allgather",
                           "--autotune",
                           "--no-autotune",
                           "--autotune-log-file",
                           "--autotune-warmup-samples",
                           "--autotune-steps-per-sample",
                           "--autotune-bayes-opt-max-samples",
                           "--autotune-gaussian-process-noise",
                           "--min-np",
                           "--max-np",
                           "--slots-per-host",
                           "--elastic-timeout",
                           "--reset-limit",
                           "--blacklist-cooldown-range",
                           "--timeline-filename",
                           "--timeline-mark-cycles",
                           "--no-timeline-mark-cycles",
                           "--no-stall-check",
                           "--stall-check-warning-time-seconds",
                           "--stall-check-shutdown-time-seconds",
                           "--mpi-threads-disable",
                           "--no-mpi-threads-disable",
                           "--mpi-args",
                           "--tcp",
                           "--binding-args",
                           "--num-nccl-streams",
                           "--thread-affinity",
                           "--gloo-timeout-seconds",
                           "--log-level",
                           "--log-with-timestamp",
                           "--log-hide-timestamp",
                           "--prefix-output-with-timestamp",
                           "-H",
                           "--hosts",
                           "-hostfile",
                           "--hostfile",
                           "--host-discovery-script",
                           "--gloo",
                           "--mpi",
                           "--jsrun"}) {
    EXPECT_TRUE(find_flag(name) != nullptr || find_refused_flag(name) != nullptr) << name;
  }
}

TEST(FlagTable, ChoicesComeFromTheFlagOrItsVariable) {
  EXPECT_THAT(choices_of(*find_flag("--bind")), ElementsAre("core", "socket", "none"));
  EXPECT_THAT(choices_of(*find_flag("--backend")), ElementsAre("auto", "self", "shm", "mpi"));
  EXPECT_THAT(choices_of(*find_flag("--threads")), IsEmpty());
  EXPECT_THAT(choices_of(*find_flag("--hostfile")), IsEmpty());
  EXPECT_THAT(choices_of(*find_flag("--verbose")), IsEmpty());
}

TEST(Help, ShowsEveryFlagAndVariable) {
  const std::string help = help_text();
  EXPECT_THAT(help, HasSubstr("  -np, -n, --num-proc N           number of ranks"));
  EXPECT_THAT(help, HasSubstr("  --threads N                     compute threads per rank"));
  EXPECT_THAT(help, HasSubstr("\nWhere to run:\n"));
  for (const Flag& flag : flag_table()) {
    for (const std::string_view name : shown_names(flag)) EXPECT_THAT(help, HasSubstr(std::string(name)));
  }
  for (const RunVariable& variable : run_variables()) EXPECT_THAT(help, HasSubstr(variable.name));
}

TEST(Help, FitsAWideTerminalAndNamesEachGroupOnce) {
  std::istringstream lines(help_text());
  std::set<std::string> headings;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 120u) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
    const bool is_heading = !line.starts_with(' ') && line.ends_with(':');
    EXPECT_TRUE(!is_heading || headings.insert(line).second) << line;
  }
  EXPECT_GE(headings.size(), 8u);
}

std::string with_minus_signs(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '-' ? "\\-" : std::string(1, c);
  return text;
}

TEST(Documents, HaveEveryFlag) {
  const std::string page = man_page();
  EXPECT_THAT(page, StartsWith(".TH FEDRUN 1 "));
  const std::string bash = completion_script("bash");
  EXPECT_THAT(bash, HasSubstr("complete -F _fedrun fedrun"));
  const std::string zsh = completion_script("zsh");
  EXPECT_THAT(zsh, StartsWith("#compdef fedrun\n"));
  for (const Flag& flag : flag_table()) {
    for (const std::string_view shown : shown_names(flag)) {
      const std::string name(shown);
      EXPECT_THAT(bash, HasSubstr(name));
      EXPECT_THAT(zsh, HasSubstr(name));
      EXPECT_THAT(page, HasSubstr("\\fB" + with_minus_signs(name) + "\\fR"));
    }
  }
  for (const RunVariable& variable : run_variables()) EXPECT_THAT(page, HasSubstr(variable.name));
}

TEST(NearestName, CountsChanges) {
  const struct {
    const char* one;
    const char* other;
    int distance;
  } cases[] = {
      {"", "", 0},      {"abc", "abc", 0},           {"", "abc", 3},          {"abc", "", 3}, {"abc", "abd", 1},
      {"abc", "ac", 1}, {"hostfile", "hsotfile", 2}, {"kitten", "sitting", 3}};
  for (const auto& example : cases) EXPECT_EQ(edit_distance(example.one, example.other), example.distance);
}

TEST(NearestName, SuggestsOnlyWhatIsNear) {
  const std::vector<std::string_view> names = {"np", "verbose", "hostfile", "hosts"};
  EXPECT_EQ(nearest_name("verbos", names), "verbose");
  EXPECT_EQ(nearest_name("hostfle", names), "hostfile");
  EXPECT_EQ(nearest_name("host", names), "hosts");
  EXPECT_EQ(nearest_name("np4", names), "np");
  EXPECT_EQ(nearest_name("lr", names), std::nullopt);
  EXPECT_EQ(nearest_name("", names), std::nullopt);
  EXPECT_EQ(nearest_name("epochs", names), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(100'000, 'x'), names), std::nullopt);
}

}  // namespace
}  // namespace fedrun::launcher
