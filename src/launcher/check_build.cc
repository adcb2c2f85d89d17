#include <fedrun/core/version.h>
#include <fedrun/launcher/check_build.h>
#include <fedrun/launcher/host_probe.h>
#include <fedrun/launcher/run_commands.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string_view>

namespace fedrun::launcher {
namespace {

// Empty when there is no mpirun or when it is not Open MPI's.
std::string installed_open_mpi() {
  constexpr std::chrono::seconds limit{5};
  return open_mpi_version(run_commands({{{"mpirun", "--version"}}}, limit)[0].output);
}

int usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                     : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

// The kernel lists only what programs may use; x86 calls the line "flags", Arm "Features".
std::vector<std::string> simd_features() {
  constexpr std::array<std::string_view, 11> relevant = {
      "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_bf16", "avx512_fp16", "amx_bf16", "asimd", "sve", "bf16"};
  std::vector<std::string> found;
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (std::find(relevant.begin(), relevant.end(), word) != relevant.end()) found.push_back(word);
    }
    break;
  }
  return found;
}

std::string gib(std::uint64_t bytes) { return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30)); }

std::string row(std::string_view name, std::string_view value) { return fmt::format("  {:<12}{}\n", name, value); }

// One row for something that a build has or lacks.
std::string row(std::string_view name, const std::string& version, std::string_view remedy) {
  return row(name, version.empty() ? fmt::format("no: {}", remedy) : version);
}

std::string major_and_minor(std::string_view version) {
  const size_t first_dot = version.find('.');
  return std::string(version.substr(0, version.find('.', first_dot + 1)));
}

std::string mpirun_row(const BuildFacts& build, const MachineFacts& machine) {
  if (machine.open_mpi.empty()) {
    return row("mpirun", "no: run scripts/setup.sh, or install the Debian package openmpi-bin");
  }
  const bool differs = !build.open_mpi.empty() && major_and_minor(build.open_mpi) != major_and_minor(machine.open_mpi);
  return row("mpirun",
             fmt::format("Open MPI {}{}", machine.open_mpi,
                         differs ? ", but this build is for " + build.open_mpi + ": put that one first on PATH" : ""));
}

std::string shared_memory_row(std::uint64_t bytes) {
  constexpr std::uint64_t enough = std::uint64_t{256} << 20;
  if (bytes == 0) return row("/dev/shm", "no: mount a tmpfs there");
  return row("/dev/shm", gib(bytes) + (bytes < enough ? ", which is small: docker run --shm-size=1g" : ""));
}

}  // namespace

MachineFacts examine_machine(int gpus) {
  MachineFacts machine;
  machine.gpus = gpus;
  machine.open_mpi = installed_open_mpi();
  machine.cores = usable_cores();
  machine.memory_bytes =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  struct statvfs shared = {};
  if (statvfs("/dev/shm", &shared) == 0) machine.shared_memory_bytes = std::uint64_t{shared.f_blocks} * shared.f_frsize;
  machine.simd = simd_features();
  return machine;
}

std::string check_build_text(const BuildFacts& build, const MachineFacts& machine) {
  std::string text = fmt::format("fedrun {}\n\nThis build\n", version);
  text += row("compiler", build.compiler);
  text += row("build type", build.build_type.empty() ? "none" : build.build_type);
  text += row("LibTorch", build.libtorch, "configure with -DFEDRUN_TORCH=ON");
  text += row("CUDA", build.cuda, "run GPU=1 scripts/setup.sh and configure with --preset cuda");
  text += row("NCCL", build.nccl, "run GPU=1 scripts/setup.sh and configure with --preset cuda");
  text += "\nBackends\n";
  text += row("self", "yes");
  text += row("shm", build.open_mpi.empty() ? "" : "yes, inside one host",
              "needs mpi to bring the ranks together: configure with -DFEDRUN_MPI=ON");
  text += row("mpi", build.open_mpi.empty() ? "" : "yes, built for Open MPI " + build.open_mpi,
              "configure with -DFEDRUN_MPI=ON");
  text += row("nccl", build.nccl.empty() ? "" : "yes, for elements on GPUs", "configure with --preset cuda");
  text += "\nThis machine\n";
  text += mpirun_row(build, machine);
  text += row("GPUs", machine.gpus == 0 ? "none that its driver shows" : fmt::format("{}", machine.gpus));
  text += row("cores", fmt::format("{}", machine.cores));
  text += row("memory", gib(machine.memory_bytes));
  text += shared_memory_row(machine.shared_memory_bytes);
  text += row("SIMD", machine.simd.empty() ? "none that fedrun uses" : fmt::format("{}", fmt::join(machine.simd, " ")));
  return text;
}

}  // namespace fedrun::launcher
