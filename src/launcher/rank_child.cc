#include <fcntl.h>
#include <fedrun/core/error.h>
#include <fedrun/core/run_env.h>
#include <fedrun/launcher/exec_strings.h>
#include <fedrun/launcher/rank_child.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace fedrun::launcher {
namespace {

struct Channel {
  FileDescriptor ours;
  FileDescriptor theirs;
};

Channel make_pipe() {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw BackendError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// A machine without pseudo-terminals gives a pipe, and the program's lines come later.
Channel make_terminal(int columns) {
  Channel channel;
  channel.ours = FileDescriptor(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (channel.ours.get() < 0 || grantpt(channel.ours.get()) != 0 || unlockpt(channel.ours.get()) != 0)
    return make_pipe();
  std::array<char, 128> name;
  if (ptsname_r(channel.ours.get(), name.data(), name.size()) != 0) return make_pipe();
  channel.theirs = FileDescriptor(open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (channel.theirs.get() < 0) return make_pipe();
  termios settings = {};
  tcgetattr(channel.theirs.get(), &settings);
  cfmakeraw(&settings);  // every byte as it is: no "\r\n" for "\n"
  tcsetattr(channel.theirs.get(), TCSANOW, &settings);
  if (columns > 0) {
    const winsize size = {24, static_cast<unsigned short>(columns), 0, 0};
    ioctl(channel.theirs.get(), TIOCSWINSZ, &size);
  }
  return channel;
}

void read_without_blocking(const FileDescriptor& descriptor) {
  fcntl(descriptor.get(), F_SETFL, fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
}

}  // namespace

RankChild start_rank(const std::vector<std::string>& command, const sigset_t& signal_mask, int columns) {
  Channel output = make_terminal(columns);
  Channel errors = make_pipe();
  Channel progress = make_pipe();
  Channel failure = make_pipe();  // carries errno when the program cannot be executed, and closes when it is
  const std::string progress_name = fmt::format("{}", progress.theirs.get());
  const std::vector<char*> arguments = exec_strings(command);
  const pid_t parent = getpid();
  RankChild child;
  child.pid = fork();
  if (child.pid < 0) throw BackendError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (child.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(EXIT_FAILURE);  // the keeper died before the line above
    dup2(output.theirs.get(), STDOUT_FILENO);
    dup2(errors.theirs.get(), STDERR_FILENO);
    fcntl(progress.theirs.get(), F_SETFD, 0);
    setenv(progress_descriptor_variable, progress_name.c_str(), 1);
    for (const int signal : {SIGPIPE, SIGUSR1, SIGUSR2}) std::signal(signal, SIG_DFL);
    sigprocmask(SIG_SETMASK, &signal_mask, nullptr);
    execvp(arguments[0], arguments.data());
    const int problem = errno;
    [[maybe_unused]] const ssize_t written = write(failure.theirs.get(), &problem, sizeof problem);
    _exit(127);
  }
  failure.theirs.close();
  if (read(failure.ours.get(), &child.start_error, sizeof child.start_error) <= 0) child.start_error = 0;
  child.output = std::move(output.ours);
  child.errors = std::move(errors.ours);
  child.progress = std::move(progress.ours);
  for (const FileDescriptor* end : {&child.output, &child.errors, &child.progress}) read_without_blocking(*end);
  return child;
}

}  // namespace fedrun::launcher
