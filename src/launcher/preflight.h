// Checks all hosts of a run before anything is started on them.
#pragma once

#include <fedrun/core/run_env.h>
#include <fedrun/launcher/checks.h>
#include <fedrun/launcher/remote_shell.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fedrun::launcher {

// What the ranks get from the process that starts them.
struct Surroundings {
  std::string directory;     // they start in it
  std::string search_path;   // PATH
  std::string library_path;  // LD_LIBRARY_PATH

  static Surroundings of_this_process();
};

struct PreflightRequest {
  std::vector<Host> hosts;  // empty: this machine
  RemoteShell shell = {};
  std::vector<std::string> program = {};  // may be empty: then only the hosts are checked
  std::string fedrun = {};                // path of this fedrun, which the ranks need on every host; empty: they do not
  std::optional<std::string> network_interfaces = {};  // the user's choice, as for Open MPI
  bool gpus_expected = false;
  std::chrono::seconds limit{15};  // for all hosts together
  bool use_cache = false;
  std::filesystem::path cache_directory = {};  // where hosts that passed are remembered; empty: nowhere
  Surroundings surroundings = Surroundings::of_this_process();
};

struct PreflightResult {
  std::vector<CheckRow> rows;
  bool passed = false;
  bool remembered = false;  // the hosts passed a short while ago and were not asked; there are no rows
  // For Open MPI's btl_tcp_if_include and oob_tcp_if_include; empty: leave them alone.
  std::string network = {};
};

// Throws BackendError when not even this machine can be asked.
PreflightResult preflight(const PreflightRequest& request);

// $XDG_CACHE_HOME/fedrun/hosts, or the same below ~/.cache; empty when the environment names neither.
std::filesystem::path host_cache_directory(const RunEnv::Lookup& lookup);

}  // namespace fedrun::launcher
