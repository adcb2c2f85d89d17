#include <fcntl.h>
#include <fedrun/collectives/start_progress.h>
#include <fedrun/core/run_env.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace fedrun {

StartProgress::StartProgress(int descriptor) {
  struct stat status = {};
  const bool is_launchers_pipe = descriptor >= 0 && fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode);
  if (!is_launchers_pipe) return;
  unsetenv(progress_descriptor_variable);  // the number means something else in a process that this one starts
  launcher_ = FileDescriptor(descriptor);
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

void StartProgress::tell(char step) const {
  if (launcher_.get() < 0) return;
  // A launcher that is gone ends the ranks, so nothing is lost.
  [[maybe_unused]] const ssize_t written = write(launcher_.get(), &step, 1);
}

}  // namespace fedrun
