// What a host has told about itself: the answers of the script in host_probe.
#pragma once

#include <fedrun/launcher/ipv4.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fedrun::launcher {

enum class FileState { not_asked, missing, not_a_file, not_executable, executable };

// A file is known by its content; one that is too large to read each time, by what its linker has written into it, or
// by its size alone.
struct FileFacts {
  FileState state = FileState::not_asked;
  std::string path = {};
  std::uint64_t bytes = 0;
  std::string digest = {};  // "sha256:…", "build-id:…" or empty

  bool same_content(const FileFacts& other) const;
};

struct InterfaceAddress {
  std::string interface;  // empty: unknown
  Ipv4 address = 0;
  std::optional<Ipv4Network> network;  // unset: unknown

  bool operator==(const InterfaceAddress&) const = default;
};

struct HostFacts {
  bool complete = false;              // the script came to its end
  std::optional<double> clock_ahead;  // seconds; against the clock of this machine
  std::string name;                   // what the host calls itself
  std::optional<Ipv4> reached_at;     // the address by which our connection came in
  std::optional<Ipv4> reached_from;   // and where it came from
  bool has_directory = false;         // the working directory
  FileFacts program;
  FileFacts fedrun;
  std::vector<FileFacts> libraries;            // of both, where they were found
  std::vector<std::string> missing_libraries;  // names, or the loader's words about a version that is not there
  std::string open_mpi;                        // version; empty: there is no mpirun on PATH
  bool has_orted = false;                      // Open MPI's daemon, on the PATH that a command through ssh gets
  bool has_rsync = false;
  std::vector<InterfaceAddress> addresses;
  std::string machine;  // architecture, such as x86_64
  int cores = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t free_memory_bytes = 0;
  std::uint64_t shared_memory_bytes = 0;  // 0: there is no /dev/shm
  std::uint64_t free_shared_memory_bytes = 0;
  int gpus = 0;
  std::string gpu_driver;
  std::string gpu_problem;  // what nvidia-smi complained of
};

}  // namespace fedrun::launcher
