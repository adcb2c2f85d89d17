#include "runner.h"

#include <fcntl.h>
#include <fedrun/core/error.h>
#include <fedrun/core/file_descriptor.h>
#include <fedrun/launcher/exec_strings.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace fedrun::bench::suite {
namespace {

// A group of its own, so that Ctrl-C reaches it once, through us: fedrun ends its ranks in order at the first signal
// and at once at the second.
[[noreturn]] void become(const std::vector<std::string>& command, const sigset_t& signal_mask, pid_t parent, int log) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(EXIT_FAILURE);  // it died before the line above
  setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  sigprocmask(SIG_SETMASK, &signal_mask, nullptr);
  const auto words = launcher::exec_strings(command);
  execv(words[0], words.data());
  const std::string message = fmt::format("cannot start {}: {}\n", words[0], std::strerror(errno));
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message.data(), message.size());
  _exit(127);
}

}  // namespace

void Runner::take_signals(std::optional<pid_t> pass_on_to) {
  signals_.read_all([&](const signalfd_siginfo& info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) return;
    stopped_by_ = signal;
    if (pass_on_to) kill(*pass_on_to, signal);
  });
}

std::optional<int> Runner::stopped_by() {
  take_signals(std::nullopt);
  return stopped_by_;
}

CommandEnd Runner::run(const std::vector<std::string>& command, const std::filesystem::path& log) {
  const FileDescriptor file(open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
  if (file.get() < 0) throw BackendError(fmt::format("cannot write {}: {}", log.string(), std::strerror(errno)));
  const auto start = std::chrono::steady_clock::now();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw BackendError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (pid == 0) become(command, signals_.before(), parent, file.get());
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    pollfd waiting = {signals_.descriptor(), POLLIN, 0};
    if (poll(&waiting, 1, -1) < 0 && errno != EINTR) throw BackendError(fmt::format("poll: {}", std::strerror(errno)));
    take_signals(pid);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), elapsed.count()};
}

}  // namespace fedrun::bench::suite
