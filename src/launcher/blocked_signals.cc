#include <fedrun/core/error.h>
#include <fedrun/launcher/blocked_signals.h>
#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace fedrun::launcher {

BlockedSignals::BlockedSignals() {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&blocked, signal);
  }
  sigprocmask(SIG_BLOCK, &blocked, &before_);
  descriptor_ = FileDescriptor(signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK));
  if (descriptor_.get() < 0) throw BackendError(fmt::format("signalfd: {}", std::strerror(errno)));
}

void BlockedSignals::read_all(const std::function<void(const signalfd_siginfo&)>& handle) const {
  signalfd_siginfo info;
  while (read(descriptor_.get(), &info, sizeof info) == sizeof info) handle(info);
}

}  // namespace fedrun::launcher
