// What the user asked for: fedrun's own flags, and where the program and its arguments begin.
#pragma once

#include <fedrun/launcher/binding.h>
#include <fedrun/launcher/keeper_options.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fedrun::launcher {

enum class Action { launch, check, show_help, show_version, check_build, completion, man_page };

// A field that no flag has set keeps the default given here.
struct Options {
  Action action = Action::launch;
  std::string completion_shell;  // bash or zsh, for Action::completion

  std::optional<std::string> config_file;  // whose flags are already in the fields below

  // Where to run.
  std::optional<int> ranks;             // unset: one per slot of the hosts
  std::optional<std::string> hosts;     // as in -H a:2,b
  std::optional<std::string> hostfile;  // path
  int slots_per_host = 1;               // of a host that is named without a number
  bool use_slurm = true;                // inside an allocation, where no hosts are given
  std::optional<int> ssh_port;
  std::optional<std::string> ssh_identity_file;
  std::optional<std::string> network_interfaces;  // names and networks, as in eth0,10.0.0.0/8
  std::vector<std::string> sync;                  // paths to copy to every host first
  std::vector<std::string> mpi_arguments;         // for mpirun, word by word

  // Which GPU and which cores.
  std::optional<std::string> gpu_mapping_file;
  std::optional<std::string> gpu_mapping_key;
  Binding binding = Binding::none;

  // What the ranks get.
  std::vector<std::pair<std::string, std::string>> settings;  // FEDRUN_* variables that flags have set
  std::vector<std::string> pass;                              // -x: NAME, or NAME=VALUE

  // What fedrun checks, shows and allows.
  bool use_cache = true;  // of hosts that passed the checks a short while ago
  bool verbose = false;
  bool dry_run = false;
  std::optional<std::string> output_directory;
  bool timestamps = false;
  bool prefix = true;
  std::optional<std::chrono::seconds> start_timeout;
  std::optional<std::chrono::seconds> timeout;
  std::optional<int> debug_rank;
  Debugger debugger = Debugger::gdbserver;

  std::vector<std::string> program;  // name and arguments, exactly as given
};

// `arguments` is argv without fedrun's own name. Flags end at the first word that is not one, or at `--`; what follows
// belongs to the program. `check` as the very first word asks for checks only, and needs no program. Flags on
// the command line win over those of the file behind --config. Throws UsageError that names the flag.
Options parse_options(std::span<const std::string> arguments);

}  // namespace fedrun::launcher
