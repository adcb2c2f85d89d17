// Verdicts and remedies for hosts that have everything and for those that lack something; the table that shows them.
#include <fedrun/launcher/check_table.h>
#include <fedrun/launcher/checks.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace fedrun::launcher {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

FileFacts file(const char* path, const char* digest) {
  return {.state = FileState::executable, .path = path, .bytes = 1000, .digest = digest};
}

HostFacts good_facts() {
  HostFacts facts;
  facts.complete = true;
  facts.clock_ahead = 0.04;
  facts.name = "node2";
  facts.has_directory = true;
  facts.program = file("./train", "sha256:0123456789abcdef");
  facts.fedrun = file("/opt/bin/fedrun", "sha256:fedcba9876543210");
  facts.libraries = {file("/lib/libc.so.6", "sha256:c"), file("/opt/torch/libtorch_cpu.so", "build-id:t")};
  facts.open_mpi = "4.1.4";
  facts.has_orted = true;
  facts.machine = "x86_64";
  facts.cores = 8;
  facts.memory_bytes = std::uint64_t{16} << 30;
  facts.free_memory_bytes = std::uint64_t{12} << 30;
  facts.shared_memory_bytes = std::uint64_t{8} << 30;
  facts.free_shared_memory_bytes = std::uint64_t{8} << 30;
  return facts;
}

std::vector<CheckRow> judge(const HostFacts& facts, bool gpus = false, bool is_here = false) {
  return judge_host({"node2", 2}, facts, is_here,
                    {.directory = "/home/u/run", .program = "./train", .gpus = gpus, .original = good_facts()});
}

TEST(Checks, AllIsWell) {
  const std::vector<CheckRow> rows = judge(good_facts());
  EXPECT_THAT(rows, Each(AllOf(Field(&CheckRow::verdict, Verdict::ok), Field(&CheckRow::remedy, ""),
                               Field(&CheckRow::host, "node2"))));
  std::vector<std::string> checks;
  for (const CheckRow& row : rows) checks.push_back(row.check);
  EXPECT_THAT(checks, testing::ElementsAre("directory", "program", "fedrun", "libraries", "Open MPI", "cores", "memory",
                                           "/dev/shm", "clock"));
}

TEST(Checks, ByTable) {
  const struct {
    const char* check;
    std::function<void(HostFacts&)> spoil;
    Verdict verdict;
    const char* what;
    const char* remedy;
  } cases[] = {
      {"directory", [](HostFacts& f) { f.has_directory = false; }, Verdict::failed, "there is no /home/u/run",
       "--sync"},
      {"program", [](HostFacts& f) { f.program = {.state = FileState::missing}; }, Verdict::failed,
       "./train does not exist", "--sync ./train"},
      {"program", [](HostFacts& f) { f.program = {.state = FileState::not_a_file}; }, Verdict::failed,
       "is not a program", "name the program"},
      {"program", [](HostFacts& f) { f.program = {.state = FileState::not_executable}; }, Verdict::failed,
       "is not executable", "chmod +x ./train"},
      {"program", [](HostFacts& f) { f.program.digest = "sha256:aaaaaaaaaaaaaaaa"; }, Verdict::failed,
       "./train differs: aaaaaaaaaaaa there, 0123456789ab here", "--sync ./train"},
      {"program", [](HostFacts& f) { f.machine = "aarch64"; }, Verdict::failed, "built for x86_64", "one architecture"},
      {"fedrun", [](HostFacts& f) { f.fedrun = {.state = FileState::missing}; }, Verdict::failed,
       "/opt/bin/fedrun does not exist", "--sync"},
      {"fedrun", [](HostFacts& f) { f.fedrun.bytes = 7; }, Verdict::failed, "/opt/bin/fedrun differs",
       "install the same version"},
      {"libraries",
       [](HostFacts& f) {
         f.missing_libraries = {"liba.so", "libb.so"};
       },
       Verdict::failed, "not found: liba.so, libb.so", "LD_LIBRARY_PATH"},
      {"libraries", [](HostFacts& f) { f.missing_libraries = {"1", "2", "3", "4", "5", "6", "7", "8"}; },
       Verdict::failed, "not found: 1, 2, 3, 4, 5, 6 and 2 more", ""},
      {"libraries", [](HostFacts& f) { f.libraries[0].digest = "sha256:d"; }, Verdict::warning,
       "another version of libc.so.6", "usually harmless"},
      {"libraries", [](HostFacts& f) { f.libraries[1].digest = "build-id:u"; }, Verdict::failed,
       "another version of libtorch_cpu.so", "the same version"},
      {"libraries", [](HostFacts& f) { f.libraries[1].digest = ""; }, Verdict::ok, "2, all found", ""},
      {"Open MPI", [](HostFacts& f) { f.has_orted = false; }, Verdict::failed, "orted", "openmpi-bin"},
      {"Open MPI", [](HostFacts& f) { f.open_mpi = "4.1.6"; }, Verdict::warning, "4.1.6, but 4.1.4 here",
       "same version"},
      {"Open MPI", [](HostFacts& f) { f.open_mpi = "4.0.4"; }, Verdict::failed, "4.0.4, but 4.1.4 here",
       "same version"},
      {"Open MPI", [](HostFacts& f) { f.open_mpi = ""; }, Verdict::warning, "no mpirun", "openmpi-bin"},
      {"cores", [](HostFacts& f) { f.cores = 1; }, Verdict::warning, "1 for 2 slots", "fewer slots"},
      {"memory", [](HostFacts& f) { f.free_memory_bytes = 511 << 20; }, Verdict::warning, "511 MiB free of 16.0 GiB",
       "killed"},
      {"/dev/shm", [](HostFacts& f) { f.shared_memory_bytes = 0; }, Verdict::warning, "there is none", "tmpfs"},
      {"/dev/shm", [](HostFacts& f) { f.shared_memory_bytes = 64 << 20; }, Verdict::warning, "which is small",
       "--shm-size"},
      {"/dev/shm", [](HostFacts& f) { f.free_shared_memory_bytes = 7 << 20; }, Verdict::failed,
       "7 MiB free of 8.0 GiB; Open MPI needs 8 MiB", "dead programs"},
      {"GPUs", [](HostFacts& f) { f.gpu_problem = "Driver/library version mismatch"; }, Verdict::warning,
       "nvidia-smi: Driver/library version mismatch", "restart"},
      {"GPUs", [](HostFacts& f) { f.gpus = 4, f.gpu_driver = "535"; }, Verdict::ok, "4, driver 535", ""},
      {"clock", [](HostFacts& f) { f.clock_ahead = -1.5; }, Verdict::warning, "1.5 s behind this machine's",
       "time service"},
      {"clock", [](HostFacts& f) { f.clock_ahead = 90; }, Verdict::warning, "90.0 s ahead of this machine's",
       "time service"},
      {"clock", [](HostFacts& f) { f.clock_ahead.reset(); }, Verdict::warning, "it tells no time", "date"},
  };
  for (const auto& example : cases) {
    HostFacts facts = good_facts();
    example.spoil(facts);
    const std::vector<CheckRow> rows = judge(facts);
    int found = 0;
    for (const CheckRow& row : rows) {
      if (row.check != example.check) {
        EXPECT_EQ(row.verdict, Verdict::ok) << row.check << " after " << example.what;
        continue;
      }
      ++found;
      EXPECT_EQ(row.verdict, example.verdict) << row.what;
      EXPECT_THAT(row.what, HasSubstr(example.what));
      EXPECT_THAT(row.remedy, HasSubstr(example.remedy));
    }
    EXPECT_EQ(found, 1) << example.check << ": " << example.what;
  }
}

const CheckRow& row_of(const std::vector<CheckRow>& rows, std::string_view check) {
  for (const CheckRow& row : rows) {
    if (row.check == check) return row;
  }
  throw std::runtime_error("no such row");
}

TEST(Checks, GpusThatTheRanksNeed) {
  HostFacts facts = good_facts();
  EXPECT_EQ(row_of(judge(facts, true), "GPUs").verdict, Verdict::failed);
  facts.gpus = 1;
  facts.gpu_driver = "535";
  EXPECT_THAT(row_of(judge(facts, true), "GPUs").what, HasSubstr("1, driver 535, for 2 slots"));
  facts.gpus = 2;
  EXPECT_EQ(row_of(judge(facts, true), "GPUs").verdict, Verdict::ok);
  facts.gpu_problem = "No devices were found";
  EXPECT_EQ(row_of(judge(facts, true), "GPUs").verdict, Verdict::failed);
}

TEST(Checks, AProgramThatIsNowhereCannotBeBrought) {
  HostFacts facts = good_facts();
  facts.program = {.state = FileState::missing};
  const Expectations expected{.directory = "/home/u/run", .program = "./trian", .original = facts};
  EXPECT_THAT(row_of(judge_host({"node2", 2}, facts, false, expected), "program").remedy, HasSubstr("check the path"));
}

TEST(Checks, ThisMachineNeedsMpirunAndNoDaemon) {
  HostFacts facts = good_facts();
  facts.has_orted = false;
  EXPECT_EQ(row_of(judge(facts, false, true), "Open MPI").verdict, Verdict::ok);
  facts.open_mpi = "";
  EXPECT_EQ(row_of(judge(facts, false, true), "Open MPI").verdict, Verdict::failed);
}

TEST(CheckTable, IsAlignedWithRemediesBelow) {
  const PreflightResult result{.rows = {{"node1", "ssh", Verdict::ok, "reached"},
                                        {"node2.example.org", "Open MPI", Verdict::failed, "none", "install it"},
                                        {"node1", "clock", Verdict::warning, "late", "wind it up"}},
                               .passed = false};
  EXPECT_EQ(check_table(result),
            "host               check     verdict  found\n"
            "node1              ssh       ok       reached\n"
            "node2.example.org  Open MPI  FAILED   none\n"
            "                                      → install it\n"
            "node1              clock     warning  late\n"
            "                                      → wind it up\n"
            "\n"
            "1 check FAILED (node2.example.org), 1 warning: fedrun starts nothing there until that is mended\n");
  EXPECT_EQ(check_failures(result),
            "node2.example.org  Open MPI  FAILED   none\n"
            "                                      → install it\n");
}

TEST(CheckTable, SumsUpSuccess) {
  const PreflightResult result{.rows = {{"a", "ssh", Verdict::ok, "reached"}}, .passed = true};
  EXPECT_THAT(check_table(result), HasSubstr("\npassed: a run can start on these hosts\n"));
  EXPECT_EQ(check_failures(result), "");
}

}  // namespace
}  // namespace fedrun::launcher
