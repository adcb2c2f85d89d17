// Runs mpirun to its end: shows what it says, passes signals on, and leaves no process behind.
#pragma once

#include <fedrun/launcher/mpirun_command.h>
#include <fedrun/launcher/stderr_filter.h>

namespace fedrun::launcher {

// Returns fedrun's exit code: mpirun's, which is that of the first rank that failed; 128 + n after signal n.
// The first SIGINT, SIGTERM or SIGHUP ends all ranks in order, a second one at once.
// Call from a process with a single thread: signals are taken from a file descriptor, without handlers.
int supervise(const MpirunCommand& command, StderrFilter::Options filter_options);

}  // namespace fedrun::launcher
