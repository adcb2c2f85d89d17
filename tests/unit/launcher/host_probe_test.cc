// The script that hosts are asked by, run here for real, and the reader of its answers.
#include <fedrun/launcher/host_probe.h>
#include <fedrun/launcher/run_commands.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace fedrun::launcher {
namespace {

namespace fs = std::filesystem;
using std::chrono::system_clock;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ProbeAnswers, AreReadAmongNoise) {
  const HostFacts facts = parse_probe(
      "Welcome to node2!\n"
      "@fedrun name=node2\n"
      "@fedrun connection=10.0.0.1 40000 10.0.0.2 22\n"
      "@fedrun cores=8\n"
      "@fedrun machine=x86_64\n"
      "fortune: @fedrun cores=1\n"
      "@fedrun mpirun=mpirun (Open MPI) 4.1.4\n"
      "@fedrun orted=yes\n"
      "@fedrun rsync=yes\n"
      "@fedrun memory=2048\n"
      "@fedrun free_memory=1024\n"
      "@fedrun shared_memory=4096 1\n"
      "@fedrun address=lo 127.0.0.1/8\n"
      "@fedrun address=eth0 10.0.0.2/24\n"
      "@fedrun address=tun0 10.8.0.2\n"
      "@fedrun gpu_driver=535.54\n"
      "@fedrun gpus=4\n"
      "@fedrun directory=yes\n"
      "@fedrun program=executable 12 sha256:ab ./my train\n"
      "@fedrun fedrun=missing\n"
      "@fedrun no_library=liba.so.1\n"
      "@fedrun library_size=7 /opt/lib b.so\n"
      "@fedrun library_digest=sha256:cd /opt/lib b.so\n"
      "@fedrun unknown=x\n"
      "@fedrun complete=1000.25\n",
      system_clock::time_point(std::chrono::seconds(1000)));
  EXPECT_TRUE(facts.complete);
  EXPECT_EQ(facts.clock_ahead, 0.25);
  EXPECT_EQ(facts.name, "node2");
  EXPECT_EQ(facts.reached_at, parse_ipv4("10.0.0.2"));
  EXPECT_EQ(facts.reached_from, parse_ipv4("10.0.0.1"));
  EXPECT_EQ(facts.cores, 8);
  EXPECT_EQ(facts.machine, "x86_64");
  EXPECT_EQ(facts.open_mpi, "4.1.4");
  EXPECT_TRUE(facts.has_orted);
  EXPECT_TRUE(facts.has_rsync);
  EXPECT_EQ(facts.memory_bytes, 2u << 20);
  EXPECT_EQ(facts.free_memory_bytes, 1u << 20);
  EXPECT_EQ(facts.shared_memory_bytes, 4u << 20);
  EXPECT_EQ(facts.free_shared_memory_bytes, 1024u);
  EXPECT_THAT(facts.addresses,
              ElementsAre(InterfaceAddress{"lo", parse_ipv4("127.0.0.1").value(), parse_network("127.0.0.0/8")},
                          InterfaceAddress{"eth0", parse_ipv4("10.0.0.2").value(), parse_network("10.0.0.0/24")},
                          InterfaceAddress{"tun0", parse_ipv4("10.8.0.2").value(), std::nullopt}));
  EXPECT_EQ(facts.gpus, 4);
  EXPECT_EQ(facts.gpu_driver, "535.54");
  EXPECT_TRUE(facts.has_directory);
  EXPECT_EQ(facts.program.state, FileState::executable);
  EXPECT_EQ(facts.program.bytes, 12u);
  EXPECT_EQ(facts.program.digest, "sha256:ab");
  EXPECT_EQ(facts.program.path, "./my train");
  EXPECT_EQ(facts.fedrun.state, FileState::missing);
  EXPECT_THAT(facts.missing_libraries, ElementsAre("liba.so.1"));
  ASSERT_EQ(facts.libraries.size(), 1u);
  EXPECT_EQ(facts.libraries[0].path, "/opt/lib b.so");
  EXPECT_EQ(facts.libraries[0].bytes, 7u);
  EXPECT_EQ(facts.libraries[0].digest, "sha256:cd");
}

TEST(ProbeAnswers, GarbageIsNoAnswer) {
  for (const char* text : {"", "\n\n", "@fedrun", "@fedrun =", "@fedrun address=eth0 x/y", "@fedrun cores=many",
                           "@fedrun program=", "@fedrun complete", "\xff\xfe=@fedrun complete=1"}) {
    const HostFacts facts = parse_probe(text, {});
    EXPECT_FALSE(facts.complete) << text;
    EXPECT_EQ(facts.cores, 0) << text;
    EXPECT_THAT(facts.addresses, IsEmpty()) << text;
  }
}

// What a host without the program ip tells instead.
TEST(ProbeAnswers, RoutesTellTheNetworkOfAnAddress) {
  const HostFacts facts = parse_probe(
      "@fedrun address= 172.17.0.2\n"
      "@fedrun route=Iface Destination Gateway Mask\n"
      "@fedrun route=eth0 00000000 010011AC 00000000\n"
      "@fedrun route=eth0 000011AC 00000000 0000FFFF\n",
      {});
  EXPECT_THAT(facts.addresses,
              ElementsAre(InterfaceAddress{"eth0", parse_ipv4("172.17.0.2").value(), parse_network("172.17.0.0/16")}));
}

TEST(FileFacts, AreComparedByWhatBothHave) {
  const auto file = [](std::uint64_t bytes, const char* digest) {
    return FileFacts{.state = FileState::executable, .path = "", .bytes = bytes, .digest = digest};
  };
  EXPECT_TRUE(file(1, "sha256:a").same_content(file(1, "sha256:a")));
  EXPECT_FALSE(file(1, "sha256:a").same_content(file(1, "sha256:b")));
  EXPECT_FALSE(file(1, "sha256:a").same_content(file(2, "sha256:a")));
  EXPECT_TRUE(file(1, "build-id:a").same_content(file(1, "")));  // no readelf there
  EXPECT_FALSE(file(1, "build-id:a").same_content(file(2, "")));
}

TEST(OpenMpiVersion, ByTable) {
  EXPECT_EQ(open_mpi_version("mpirun (Open MPI) 4.1.4"), "4.1.4");
  EXPECT_EQ(open_mpi_version("mpirun (Open MPI) 5.0.0rc1\n\nReport bugs"), "5.0.0rc1");
  EXPECT_EQ(open_mpi_version("HYDRA build details: Version 4.0.2"), "");
  EXPECT_EQ(open_mpi_version(""), "");
}

class ProbeScript : public testing::Test {
 protected:
  ProbeScript() {
    std::string name = testing::TempDir() + "fedrun_probe_test_XXXXXX";
    directory = mkdtemp(name.data());
  }
  ~ProbeScript() override { fs::remove_all(directory); }

  void make(const std::string& name, fs::perms permissions = fs::perms::owner_all) const {
    fs::create_directories((directory / name).parent_path());
    std::ofstream(directory / name) << "#!/bin/sh\n";
    fs::permissions(directory / name, permissions);
  }

  HostFacts ask(ProbeQuestions questions, const std::string& shell = "sh") const {
    if (questions.directory.empty()) questions.directory = directory;
    const CommandResult result = run_commands({{{shell, "-s"}, probe_script(questions)}}, std::chrono::seconds(60))[0];
    EXPECT_TRUE(result.succeeded());
    EXPECT_EQ(result.errors, "");
    const HostFacts facts = parse_probe(result.output, result.last_output_at);
    EXPECT_TRUE(facts.complete);
    return facts;
  }

  fs::path directory;
};

TEST_F(ProbeScript, TellsAboutThisMachine) {
  for (const char* shell : {"sh", "bash"}) {
    const HostFacts facts = ask({}, shell);
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    EXPECT_EQ(facts.name, name);
    EXPECT_GE(facts.cores, 1);
    EXPECT_GT(facts.memory_bytes, 64u << 20);
    EXPECT_GT(facts.free_memory_bytes, 0u);
    EXPECT_TRUE(facts.has_directory);
    ASSERT_TRUE(facts.clock_ahead.has_value());
    EXPECT_NEAR(*facts.clock_ahead, 0, 1);
    EXPECT_THAT(facts.addresses, Contains(Field(&InterfaceAddress::address, parse_ipv4("127.0.0.1").value())));
    EXPECT_EQ(facts.program.state, FileState::not_asked);
    EXPECT_EQ(facts.fedrun.state, FileState::not_asked);
  }
}

TEST_F(ProbeScript, DescribesPrograms) {
  make("train");
  make("text", fs::perms::owner_read);
  make("first/both", fs::perms::owner_read);
  make("second/both");
  fs::create_directory(directory / "folder");
  const struct {
    const char* program;
    FileState state;
    const char* path;
  } cases[] = {
      {"./train", FileState::executable, "./train"},  {"./text", FileState::not_executable, ""},
      {"./nothing", FileState::missing, ""},          {"./folder", FileState::not_a_file, ""},
      {"both", FileState::executable, "second/both"}, {"train", FileState::missing, ""},
  };
  for (const auto& example : cases) {
    const HostFacts facts = ask({.program = example.program, .search_path = "first:second"});
    EXPECT_EQ(facts.program.state, example.state) << example.program;
    EXPECT_EQ(facts.program.path, example.path) << example.program;
  }
  EXPECT_EQ(ask({.program = "train", .search_path = "first:"}).program.path, "./train");
  // printf '#!/bin/sh\n' | sha256sum
  const FileFacts program = ask({.program = "./train"}).program;
  EXPECT_EQ(program.bytes, 10u);
  EXPECT_EQ(program.digest, "sha256:a8076d3d28d21e02012b20eaf7dbf75409a6277134439025f282e368e3305abf");
}

TEST_F(ProbeScript, FindsLibrariesOrMissesThem) {
  const HostFacts facts = ask({.program = "/bin/sh", .fedrun = fs::read_symlink("/proc/self/exe")});
  EXPECT_THAT(facts.libraries, Contains(Field(&FileFacts::path, HasSubstr("libc.so"))));
  EXPECT_THAT(facts.libraries, Contains(Field(&FileFacts::path, HasSubstr("libstdc++.so"))));
  EXPECT_THAT(facts.libraries, Each(Field(&FileFacts::digest, testing::StartsWith("sha256:"))));
  EXPECT_THAT(facts.missing_libraries, IsEmpty());
}

TEST_F(ProbeScript, SaysThatTheDirectoryIsMissing) {
  EXPECT_FALSE(ask({.directory = directory / "nowhere"}).has_directory);
}

TEST_F(ProbeScript, ExecutesNoneOfTheQuestions) {
  const std::string hostile[] = {"a b",
                                 "'",
                                 "\"",
                                 "$(touch executed)",
                                 "`touch executed`",
                                 "; touch executed;",
                                 "a\ntouch executed\n",
                                 "\\",
                                 "-n",
                                 "x' ; touch executed ; '",
                                 "END\ntouch executed"};
  for (const std::string& text : hostile) {
    make(text + ".d/" + text);
    const HostFacts facts = ask({.directory = directory / (text + ".d"),
                                 .program = "./" + text,
                                 .fedrun = directory / (text + ".d") / text,
                                 .search_path = text,
                                 .library_path = text});
    EXPECT_TRUE(facts.has_directory) << text;
    EXPECT_EQ(facts.program.state, FileState::executable) << text;
    EXPECT_EQ(facts.fedrun.state, FileState::executable) << text;
    EXPECT_EQ(ask({.directory = directory / (text + ".d"), .program = text, .search_path = directory / (text + ".d")})
                  .program.state,
              FileState::executable)
        << text;
    EXPECT_FALSE(fs::exists("executed")) << text;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      EXPECT_NE(entry.path().filename(), "executed") << text;
    }
  }
}

}  // namespace
}  // namespace fedrun::launcher
