// What fedrun says about a program that cannot be started.
#include <fedrun/launcher/program.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace fedrun::launcher {
namespace {

namespace fs = std::filesystem;

class Program : public testing::Test {
 protected:
  Program() {
    std::string name = testing::TempDir() + "fedrun_program_test_XXXXXX";
    directory = mkdtemp(name.data());
    fs::create_directories(directory / "first");
    fs::create_directories(directory / "second" / "folder");
    previous = fs::current_path();
    fs::current_path(directory);
    make("train", fs::perms::owner_all);
    make("first/both", fs::perms::owner_read);
    make("second/both", fs::perms::owner_all);
    make("first/text", fs::perms::owner_read);
    make("second/tool", fs::perms::owner_all);
  }
  ~Program() override {
    fs::current_path(previous);
    fs::remove_all(directory);
  }

  static void make(const char* file, fs::perms permissions) {
    std::ofstream(file) << "#!/bin/sh\n";
    fs::permissions(file, permissions);
  }

  fs::path directory;
  fs::path previous;
};

TEST_F(Program, ByTable) {
  const struct {
    const char* program;
    const char* path;
    int exit_code;  // 0: it can be started
    std::string message;
  } cases[] = {
      {"./train", "", 0, ""},
      {"tool", "first:second", 0, ""},
      {"both", "first:second", 0, ""},
      {"train", "first:", 0, ""},  // an empty entry of PATH means here
      {"train", "first:second", 127, "train is not on PATH; did you mean ./train?"},
      {"trian", "first:second", 127, "trian is not on PATH; write its path, such as build/bin/trian"},
      {"./trian", "first", 127, "./trian does not exist (looked in " + directory.string() + ")"},
      {"first/text", "", 126, "first/text is not executable; if it is a program: chmod +x first/text"},
      {"text", "first:second", 126, "first/text is not executable; if it is a program: chmod +x first/text"},
      {"./second", "", 126, "./second is not a program but a directory or a device"},
      {"folder", "second", 127, "folder is not on PATH; write its path, such as build/bin/folder"},
  };
  for (const auto& example : cases) {
    const auto problem = find_problem(example.program, example.path);
    EXPECT_EQ(problem ? problem->exit_code : 0, example.exit_code) << example.program;
    EXPECT_EQ(problem ? problem->message : "", example.message) << example.program;
  }
}

}  // namespace
}  // namespace fedrun::launcher
