// The process between mpirun and a rank: it binds the rank to its cores, starts it, under a debugger if wanted, tells
// fedrun what it writes and how it ends, and sees to it that the rank does not outlive mpirun.
#pragma once

#include <fedrun/launcher/keeper_options.h>

namespace fedrun::launcher {

// Returns the exit code of the rank, as shells have it. Without frames the process becomes the program and does not
// return. Call from a process with a single thread.
int keep_rank(const KeeperOptions& options);

}  // namespace fedrun::launcher
