// The text of --check-build for builds and machines that have everything, and for those that lack something.
#include <fedrun/launcher/check_build.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace fedrun::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const BuildFacts full_build = {.compiler = "GNU 12.2.0",
                               .build_type = "Release",
                               .open_mpi = "4.1.4",
                               .libtorch = "2.15.0",
                               .cuda = "13.0",
                               .nccl = "2.28"};
const MachineFacts full_machine = {.open_mpi = "4.1.6",
                                   .gpus = 4,
                                   .cores = 8,
                                   .memory_bytes = std::uint64_t{3} << 29,
                                   .shared_memory_bytes = std::uint64_t{1} << 30,
                                   .simd = {"avx2", "f16c"}};

TEST(CheckBuild, ShowsWhatIsThere) {
  EXPECT_THAT(
      check_build_text(full_build, full_machine),
      AllOf(HasSubstr("  compiler    GNU 12.2.0\n  build type  Release\n  LibTorch    2.15.0\n"),
            HasSubstr("  CUDA        13.0\n  NCCL        2.28\n"), HasSubstr("  shm         yes, inside one host\n"),
            HasSubstr("  mpi         yes, built for Open MPI 4.1.4\n  nccl        yes, for elements on GPUs\n"),
            HasSubstr("  mpirun      Open MPI 4.1.6\n  GPUs        4\n  cores       8\n  memory      1.5 GiB\n  "
                      "/dev/shm    1.0 GiB\n  SIMD        avx2 f16c\n")));
}

TEST(CheckBuild, NamesARemedyForWhatIsMissing) {
  EXPECT_THAT(
      check_build_text({}, {}),
      AllOf(HasSubstr("LibTorch    no: configure with -DFEDRUN_TORCH=ON\n"), HasSubstr("CUDA        no: run GPU=1"),
            HasSubstr("mpi         no: configure with -DFEDRUN_MPI=ON\n"),
            HasSubstr("nccl        no: configure with --preset cuda\n"),
            HasSubstr("GPUs        none that its driver shows\n"),
            HasSubstr("mpirun      no: run scripts/setup.sh, or install the Debian package openmpi-bin\n"),
            HasSubstr("/dev/shm    no: mount a tmpfs there\n")));
}

TEST(CheckBuild, NoticesAnotherOpenMpiAndSmallSharedMemory) {
  MachineFacts machine = full_machine;
  machine.open_mpi = "5.0.3";
  machine.shared_memory_bytes = 64 << 20;
  EXPECT_THAT(check_build_text(full_build, machine),
              AllOf(HasSubstr("mpirun      Open MPI 5.0.3, but this build is for 4.1.4: put that one first on PATH\n"),
                    HasSubstr("/dev/shm    0.1 GiB, which is small: docker run --shm-size=1g\n")));
}

TEST(CheckBuild, ExaminesThisMachine) {
  const MachineFacts machine = examine_machine(2);
  EXPECT_EQ(machine.gpus, 2);
  EXPECT_GE(machine.cores, 1);
  EXPECT_LE(machine.cores, sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_GT(machine.memory_bytes, std::uint64_t{64} << 20);
  EXPECT_THAT(machine.open_mpi, testing::MatchesRegex("([0-9]+\\.[0-9]+\\.[0-9a-z]+)?"));
}

}  // namespace
}  // namespace fedrun::launcher
