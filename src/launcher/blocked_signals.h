// Takes SIGCHLD and the signals that stop a run from a file descriptor, so that a loop can wait for them and for data.
#pragma once

#include <fedrun/core/file_descriptor.h>

#include <csignal>
#include <functional>

struct signalfd_siginfo;

namespace fedrun::launcher {

// Blocks them as long as it lives. Those that were ignored before, as SIGHUP is under nohup, stay so.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals() { restore(); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  void restore() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  const sigset_t& before() const { return before_; }
  int descriptor() const { return descriptor_.get(); }
  void read_all(const std::function<void(const signalfd_siginfo&)>& handle) const;

 private:
  sigset_t before_;
  FileDescriptor descriptor_;
};

}  // namespace fedrun::launcher
