// Asks a host for its facts: a script for its sh, and the reader of what the script prints.
#pragma once

#include <fedrun/launcher/host_facts.h>

#include <chrono>
#include <string>
#include <string_view>

namespace fedrun::launcher {

// What the script looks for. All of it may be any text.
struct ProbeQuestions {
  std::string directory = {};     // the working directory of the ranks
  std::string program = {};       // as the user gave it: with a slash a path, otherwise searched; empty: none
  std::string fedrun = {};        // path; empty: none
  std::string search_path = {};   // PATH of the ranks
  std::string library_path = {};  // LD_LIBRARY_PATH of the ranks
};

// For the standard input of `sh -s`. It needs no fedrun on the host, changes nothing there, and is read to its end
// before it does anything, so that nothing that it starts can swallow its rest.
std::string probe_script(const ProbeQuestions& questions);

// Skips whatever else a login shell prints. `received_at`: when the last line came, by our clock.
HostFacts parse_probe(std::string_view output, std::chrono::system_clock::time_point received_at);

// "mpirun (Open MPI) 4.1.4" → "4.1.4"; empty for the mpirun of another MPI.
std::string open_mpi_version(std::string_view mpirun_says);

}  // namespace fedrun::launcher
