// The mpirun command line for a run: a pure function, so that --dry-run and the tests see exactly what would start.
#pragma once

#include <fedrun/launcher/keeper_options.h>
#include <fedrun/launcher/placement.h>
#include <fedrun/launcher/rank_environment.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fedrun::launcher {

struct Launch {
  Placement placement;
  std::vector<PassedVariable> variables;  // for every rank
  std::string fedrun;                     // path of the command that keeps the ranks, on every host
  KeeperOptions keeper;                   // with the program
  bool as_root = false;
  bool hosts_from_slurm = false;  // mpirun starts its daemons there by srun, not by ssh
  bool ignores_slurm = false;     // fedrun runs in an allocation, and the user wants other hosts
  std::vector<std::pair<std::string, std::string>> remote_parameters = {};  // of Open MPI, for reaching other hosts
  std::string network = {};                     // between the hosts, as 10.0.0.0/24 or eth0; empty: Open MPI's choice
  std::vector<std::string> mpi_arguments = {};  // the user's own, for mpirun
  std::set<std::string> mca_parameters = {};    // that the user has set by OMPI_MCA_*; fedrun leaves those alone
};

struct MpirunCommand {
  std::vector<std::pair<std::string, std::string>> environment;  // added to fedrun's own
  std::vector<std::string> arguments;                            // "mpirun" first
};

MpirunCommand make_mpirun_command(const Launch& launch);

// One line that does the same when pasted into a shell.
std::string to_shell(const MpirunCommand& command);

}  // namespace fedrun::launcher
