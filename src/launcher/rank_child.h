// Starts the program of a rank with its output going to us: standard output through a pseudo-terminal, so that the
// program writes lines when they are complete, as it would on the user's terminal.
#pragma once

#include <fedrun/core/file_descriptor.h>
#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

namespace fedrun::launcher {

struct RankChild {
  pid_t pid = -1;
  FileDescriptor output;
  FileDescriptor errors;
  FileDescriptor progress;  // the program's Session writes here how far it has come
  int start_error = 0;      // errno of the failed start; 0: the program runs
};

// The child ends with us, however we end. `columns`: of the user's terminal; 0: there is none.
// Throws BackendError when the system lacks what it takes.
RankChild start_rank(const std::vector<std::string>& command, const sigset_t& signal_mask, int columns);

}  // namespace fedrun::launcher
