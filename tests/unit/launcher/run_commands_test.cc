// Commands that run at once: their words and outcomes, time that is up, and that nothing stays behind.
#include <fedrun/launcher/run_commands.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

namespace fedrun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

CommandResult run(std::vector<std::string> arguments, std::string input = "") {
  return run_commands({{std::move(arguments), std::move(input)}}, seconds(20))[0];
}

CommandResult run_shell(const std::string& script) { return run({"sh", "-s"}, script); }

TEST(RunCommands, BringsOutputErrorsAndExitCode) {
  const CommandResult result = run_shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "err\n");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_FALSE(result.late);
  EXPECT_FALSE(result.succeeded());
  EXPECT_EQ(run_shell("kill -KILL $$").exit_code, 128 + SIGKILL);
  EXPECT_TRUE(run_shell("exit 0").succeeded());
}

TEST(RunCommands, PassesWordsUnchanged) {
  EXPECT_EQ(run({"printf", "<%s>", "a b", "$(false)", "'", "", "ä\n"}).output, "<a b><$(false)><'><><ä\n>");
}

TEST(RunCommands, SaysWhyACommandCannotStart) {
  const CommandResult result = run({"/no/such/program"});
  EXPECT_EQ(result.start_error, ENOENT);
  EXPECT_FALSE(result.succeeded());
}

TEST(RunCommands, CarriesMoreThanAPipeHolds) {
  const std::string text(3 << 20, 'x');
  EXPECT_EQ(run({"cat"}, text).output, text);
  EXPECT_TRUE(run({"true"}, text).succeeded());  // which reads none of it
}

TEST(RunCommands, RunsAllAtOnceAndKeepsTheirOrder) {
  std::vector<Command> commands;
  for (int i = 0; i < 300; ++i) commands.push_back({{"sh", "-c", "sleep 0.5; echo " + std::to_string(i)}});
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<CommandResult> results = run_commands(commands, seconds(60));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(30));
  for (int i = 0; i < 300; ++i) EXPECT_EQ(results[static_cast<size_t>(i)].output, std::to_string(i) + "\n");
}

TEST(RunCommands, EndsWhatIsLateWithAllThatItStarted) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<CommandResult> results = run_commands(
      {{{"sh", "-c", "trap '' TERM; sleep 300 & echo $!; wait; sleep 300"}}, {{"echo", "quick"}}}, milliseconds(500));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
  EXPECT_TRUE(results[0].late);
  EXPECT_FALSE(results[1].late);
  EXPECT_EQ(results[1].output, "quick\n");
  const pid_t grandchild = std::stoi(results[0].output);
  const auto give_up = std::chrono::steady_clock::now() + seconds(10);
  const auto lives = [&] {
    const CommandResult state =
        run({"sed", "-n", "s/^State:.\\(.\\).*/\\1/p", "/proc/" + std::to_string(grandchild) + "/status"});
    return state.succeeded() && state.output != "Z\n";
  };
  while (lives() && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(lives());
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child was not waited for";
}

TEST(RunCommands, DoesNotWaitForOneThatStaysOnPurpose) {
  const auto begin = std::chrono::steady_clock::now();
  const CommandResult result = run_shell("setsid sleep 5 & echo done");
  EXPECT_EQ(result.output, "done\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(4));
}

TEST(RunCommands, HasNoTerminalAndSpeaksEnglish) {
  setenv("LC_ALL", "de_DE.UTF-8", 1);
  const CommandResult result = run_shell("echo $LC_ALL; : </dev/tty && echo terminal");
  EXPECT_EQ(result.output, "C\n");
}

TEST(RunCommands, NoCommandsAreNoWork) { EXPECT_TRUE(run_commands({}, seconds(1)).empty()); }

}  // namespace
}  // namespace fedrun::launcher
