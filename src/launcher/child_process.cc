#include <fcntl.h>
#include <fedrun/core/error.h>
#include <fedrun/launcher/child_process.h>
#include <fedrun/launcher/exec_strings.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace fedrun::launcher {
namespace {

// In the foreground of a terminal mpirun stays in our process group, or it could not read the terminal. Otherwise it
// gets its own, so that a signal for our group (as `timeout` sends it) reaches mpirun once, through us: at the second
// signal it gives up on an orderly end.
bool in_foreground() { return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp(); }

// fedrun's own environment with the command's additions.
std::vector<std::string> full_environment(const MpirunCommand& command) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : command.environment) entries.push_back(name + "=" + value);
  const size_t added = entries.size();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name_and_equals = text.substr(0, text.find('=') + 1);
    const bool replaced = std::any_of(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(added),
                                      [&](const std::string& own) { return own.starts_with(name_and_equals); });
    if (!replaced) entries.emplace_back(text);
  }
  return entries;
}

[[noreturn]] void become(const MpirunCommand& command, const sigset_t& signal_mask, pid_t parent, int errors) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(EXIT_FAILURE);  // fedrun died before the line above
  dup2(errors, STDERR_FILENO);
  std::signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &signal_mask, nullptr);
  const std::vector<std::string> environment = full_environment(command);
  const std::vector<char*> arguments = exec_strings(command.arguments);
  execvpe(arguments[0], arguments.data(), exec_strings(environment).data());  // searches our PATH, not the ranks'
  const std::string message = fmt::format("fedrun: cannot start {}: {}\n", arguments[0], std::strerror(errno));
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message.data(), message.size());
  _exit(127);
}

std::vector<pid_t> children() {
  std::ifstream list(fmt::format("/proc/self/task/{}/children", getpid()));
  std::vector<pid_t> pids;
  for (pid_t pid; list >> pid;) pids.push_back(pid);
  return pids;
}

}  // namespace

ChildProcess start(const MpirunCommand& command, const sigset_t& signal_mask) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw BackendError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  ChildProcess child;
  child.errors = FileDescriptor(ends[0]);
  const FileDescriptor write_end(ends[1]);
  fcntl(child.errors.get(), F_SETFL, O_NONBLOCK);
  child.gets_terminal_signals = in_foreground();
  const pid_t parent = getpid();
  child.pid = fork();
  if (child.pid < 0) throw BackendError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (child.pid == 0) {
    if (!child.gets_terminal_signals) setpgid(0, 0);
    become(command, signal_mask, parent, write_end.get());
  }
  return child;
}

Orphans::Orphans() : not_ours_(children()) { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void Orphans::end() {
  const auto is_ours = [&](pid_t pid) {
    return std::find(not_ours_.begin(), not_ours_.end(), pid) == not_ours_.end() && getsid(pid) == getsid(0);
  };
  // The processes around the ranks notice by themselves that mpirun is dead, and clear up after it.
  const auto kill_from = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  const auto give_up = kill_from + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < give_up) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    bool any_left = false;
    for (const pid_t pid : children()) {
      if (!is_ours(pid)) continue;
      any_left = true;
      if (std::chrono::steady_clock::now() >= kill_from) kill(pid, SIGKILL);
    }
    if (!any_left) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the children of those become ours in turn
  }
}

}  // namespace fedrun::launcher
