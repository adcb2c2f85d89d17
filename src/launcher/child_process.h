// Starts mpirun so that it cannot outlive fedrun, and ends what it leaves behind when it dies itself.
#pragma once

#include <fedrun/core/file_descriptor.h>
#include <fedrun/launcher/mpirun_command.h>
#include <sys/types.h>

#include <csignal>
#include <utility>
#include <vector>

namespace fedrun::launcher {

struct ChildProcess {
  pid_t pid = -1;
  bool gets_terminal_signals = false;  // Ctrl-C reaches it without us
  FileDescriptor errors;               // what it writes to standard error; reads do not block
};

// The child gets `signal_mask`, SIGTERM when fedrun dies, and fedrun's standard input and output.
// Throws BackendError when it cannot be started.
ChildProcess start(const MpirunCommand& command, const sigset_t& signal_mask);

// Processes on this machine whose mpirun has died. While this object lives, they become children of fedrun instead of
// init's, so that it can find and end them.
class Orphans {
 public:
  Orphans();

  // Waits for their end, and kills those that stay. One that has left fedrun's session did so on purpose (a daemon) and
  // stays.
  void end();

 private:
  std::vector<pid_t> not_ours_;  // children from before, which a shell may have left us by `exec fedrun`
};

}  // namespace fedrun::launcher
