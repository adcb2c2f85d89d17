// From what the user asked for, and from this machine, to what mpirun shall start and how it is watched.
#pragma once

#include <fedrun/core/run_env.h>
#include <fedrun/launcher/mpirun_command.h>
#include <fedrun/launcher/options.h>
#include <fedrun/launcher/supervise.h>

#include <string>

namespace fedrun::launcher {

// PATH, or what execvp takes where it is not set.
std::string search_path();

// The same file is started around each rank, on every host.
std::string path_of_this_command();

Placement plan_placement(const Options& options);

// Throws UsageError for what does not go together.
Launch plan_launch(Options options);
Supervision plan_supervision(const Options& options, const Launch& launch);

}  // namespace fedrun::launcher
