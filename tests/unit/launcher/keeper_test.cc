// What the process around a rank is told, where it binds the rank, and how it starts a debugger.
#include <fedrun/core/error.h>
#include <fedrun/launcher/debugger.h>
#include <fedrun/launcher/keeper_options.h>
#include <fedrun/launcher/mpirun_leftovers.h>
#include <fedrun/launcher/rank_files.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace fedrun::launcher {
namespace {

using testing::ElementsAre;

KeeperOptions with_program(std::vector<std::string> program) {
  KeeperOptions options;
  options.program = std::move(program);
  return options;
}

TEST(KeeperOptions, RoundTrip) {
  KeeperOptions all = with_program({"./train", "--lr", "0.1", "", "=x"});
  all.framed = true;
  all.binding = Binding::socket;
  all.debug_rank = 3;
  all.debugger = Debugger::gdb;
  for (const KeeperOptions& options :
       {all, with_program({"a"}), with_program({"a", "--mca", "x", ":", "--", "="}), with_program({"a", "-am", ""})}) {
    EXPECT_EQ(parse_keeper_options(to_arguments(options)), options);
  }
}

TEST(KeeperOptions, HideWhatMpirunWouldRead) {
  EXPECT_THAT(to_arguments(with_program({"./a", "-x", "b"})), ElementsAre("keep-rank", "--", "./a", "-x", "b"));
  for (const char* word : {":", "--mca", "-mca", "-gmca", "--tune", "-am"}) {
    EXPECT_THAT(to_arguments(with_program({"./a", word})),
                ElementsAre("keep-rank", "--hidden", "=./a", std::string("=") + word));
  }
}

TEST(KeeperOptions, NonsenseIsRefused) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"keep-rank"}, {"keep-rank", "--"}, {"keep-rank", "ls"}, {"keep-rank", "--bind"}}) {
    EXPECT_THROW(parse_keeper_options(words), UsageError);
  }
}

TEST(ProcessorsFor, ByTable) {
  // Two sockets with two cores each, and two hardware threads per core: 0 and 4 are one core.
  const std::vector<Processor> eight = {{0, 0, 0}, {1, 1, 0}, {2, 0, 1}, {3, 1, 1},
                                        {4, 0, 0}, {5, 1, 0}, {6, 0, 1}, {7, 1, 1}};
  const struct {
    Binding binding;
    int rank;
    int size;
    std::vector<int> processors;
  } cases[] = {
      {Binding::core, 0, 4, {0, 4}},
      {Binding::core, 3, 4, {3, 7}},
      {Binding::core, 0, 2, {0, 4, 1, 5}},
      {Binding::core, 1, 2, {2, 6, 3, 7}},
      {Binding::core, 0, 3, {0, 4}},
      {Binding::core, 2, 3, {2, 6, 3, 7}},
      {Binding::core, 0, 8, {0, 4}},
      {Binding::core, 1, 8, {0, 4}},
      {Binding::core, 7, 8, {3, 7}},
      {Binding::socket, 0, 2, {0, 4, 1, 5}},
      {Binding::socket, 3, 4, {2, 6, 3, 7}},
      {Binding::socket, 0, 1, {0, 4, 1, 5, 2, 6, 3, 7}},
      {Binding::none, 1, 2, {0, 4, 1, 5, 2, 6, 3, 7}},
  };
  for (const auto& example : cases) {
    EXPECT_EQ(processors_for(example.binding, eight, example.rank, example.size), example.processors)
        << "rank " << example.rank << " of " << example.size;
  }
}

TEST(ProcessorsFor, ThisMachine) {
  const auto processors = usable_processors();
  ASSERT_FALSE(processors.empty());
  bind_this_process(processors_for(Binding::core, processors, 0, 1));
}

std::vector<std::filesystem::path> leftovers(const char* directory, const char* job, const char* rank) {
  return mpirun_leftovers([&](const char* name) {
    const std::string_view wanted = name;
    return wanted == "PMIX_SERVER_TMPDIR" ? directory : wanted == "PMIX_NAMESPACE" ? job : rank;
  });
}

TEST(MpirunLeftovers, AreNamedAsOpenMpiNamesThem) {
  EXPECT_THAT(leftovers("/tmp/ompi.vm.0/pid.31383", "375980033", "1"),
              ElementsAre("/tmp/ompi.vm.0/pid.31383", "/dev/shm/vader_segment.vm.0.16690001.1"));
}

TEST(MpirunLeftovers, NothingElseIsRemoved) {
  for (const char* directory :
       {"/", "", "/home/me", "/tmp/ompi.vm.0", "ompi.vm.0/pid.1", "/tmp/pid.1", "/tmp/ompi.x/pid.1/.."}) {
    EXPECT_TRUE(leftovers(directory, "1", "0").empty()) << directory;
  }
  EXPECT_TRUE(leftovers(nullptr, "1", "0").empty());
  EXPECT_TRUE(leftovers("/tmp/ompi.vm.0/pid.1", nullptr, "0").empty());
}

TEST(UnderDebugger, Commands) {
  const std::vector<std::string> program = {"./train", "a b"};
  EXPECT_THAT(under_debugger(Debugger::gdbserver, 2, program, {}),
              ElementsAre("gdbserver", "--once", ":5680", "./train", "a b"));
  EXPECT_THAT(under_debugger(Debugger::gdb, 2, program, {.xterm = true, .tmux = true}),
              ElementsAre("xterm", "-T", "rank 2", "-e", "gdb", "--args", "./train", "a b"));
  const auto in_tmux = under_debugger(Debugger::gdb, 2, program, {.tmux = true});
  EXPECT_EQ(in_tmux[4], "fedrun-rank-2");
  EXPECT_EQ(in_tmux.back(), "a b");
  EXPECT_THROW(under_debugger(Debugger::gdb, 2, program, {}), UsageError);
}

TEST(UnderDebugger, LineToAttach) {
  EXPECT_EQ(how_to_attach(Debugger::gdbserver, 1, "node2", "./my train"),
            "gdb -ex 'target remote node2:5679' './my train'");
  EXPECT_EQ(how_to_attach(Debugger::gdb, 1, "node2", "./train"),
            "on node2: its own xterm window, or: tmux -L fedrun-rank-1 attach");
}

std::string content(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(RankFiles, OnePerRankAndStream) {
  const auto directory = std::filesystem::temp_directory_path() / ("fedrun_files." + std::to_string(getpid()));
  {
    RankFiles files(directory / "new" / "folder", 11);
    files.write(0, RankStream::output, "zero\n");
    files.write(10, RankStream::errors, "ten");
    files.write(10, RankStream::errors, " more");
  }
  EXPECT_EQ(content(directory / "new/folder/rank.00/stdout"), "zero\n");
  EXPECT_EQ(content(directory / "new/folder/rank.00/stderr"), "");
  EXPECT_EQ(content(directory / "new/folder/rank.10/stderr"), "ten more");
  std::ofstream(directory / "file") << "x";
  EXPECT_THROW(RankFiles(directory / "file", 1), UsageError);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace fedrun::launcher
