// fedrun --check-build: what this build and this machine can do, with a remedy for each thing that is missing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fedrun::launcher {

// Versions; empty means that it is not in this build. CMake writes them into build_facts.h.
struct BuildFacts {
  std::string compiler;
  std::string build_type;
  std::string open_mpi;
  std::string libtorch;
  std::string cuda;
  std::string nccl;
};

struct MachineFacts {
  std::string open_mpi;  // of the mpirun on PATH; empty: there is none
  int gpus = 0;
  int cores = 0;  // that this process may use
  std::uint64_t memory_bytes = 0;
  std::uint64_t shared_memory_bytes = 0;  // size of /dev/shm; 0: there is none
  std::vector<std::string> simd;          // such as avx2
};

MachineFacts examine_machine(int gpus);

std::string check_build_text(const BuildFacts& build, const MachineFacts& machine);

}  // namespace fedrun::launcher
