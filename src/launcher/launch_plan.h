// From what the user asked for, and from this machine, to what mpirun shall start and how it is watched.
#pragma once

#include <fedrun/core/run_env.h>
#include <fedrun/launcher/mpirun_command.h>
#include <fedrun/launcher/options.h>
#include <fedrun/launcher/run_table.h>
#include <fedrun/launcher/supervise.h>

#include <string>

namespace fedrun::launcher {

// PATH, or what execvp takes where it is not set.
std::string search_path();

// The same file is started around each rank, on every host.
std::string path_of_this_command();

// `gpus`: how many this machine has for the ranks. All throw UsageError for what does not go together.
Placement plan_placement(const Options& options, int gpus);
Launch plan_launch(Options options, int gpus);
RunPlan plan_ranks(const Options& options, const Launch& launch, int gpus);
Supervision plan_supervision(const Options& options, const Launch& launch);

}  // namespace fedrun::launcher
