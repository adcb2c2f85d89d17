#include <fcntl.h>
#include <fedrun/core/error.h>
#include <fedrun/core/file_descriptor.h>
#include <fedrun/launcher/run_commands.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace fedrun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// Each takes four descriptors, and a process may have 1024 unless someone has raised that.
constexpr size_t most_at_once = 200;

struct Pipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw BackendError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

void do_not_block(const FileDescriptor& descriptor) { fcntl(descriptor.get(), F_SETFL, O_NONBLOCK); }

// A write into a pipe whose reader has gone fails instead of ending us, as long as this object lives.
class IgnoredBrokenPipes {
 public:
  IgnoredBrokenPipes() {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &before_);
  }
  ~IgnoredBrokenPipes() { sigaction(SIGPIPE, &before_, nullptr); }
  IgnoredBrokenPipes(const IgnoredBrokenPipes&) = delete;
  IgnoredBrokenPipes& operator=(const IgnoredBrokenPipes&) = delete;

 private:
  struct sigaction before_ = {};
};

[[noreturn]] void become(const std::vector<std::string>& words, pid_t parent, int input, int output, int errors,
                         int start_error) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(EXIT_FAILURE);  // it died before the line above
  setsid();
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  setenv("LC_ALL", "C", 1);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));  // exec changes none
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int why = errno;
  [[maybe_unused]] const ssize_t written = write(start_error, &why, sizeof why);
  _exit(127);
}

// One command from its start to its end; ends it, if nobody has waited for that.
class RunningCommand {
 public:
  RunningCommand(const Command& command, CommandResult& result) : input_text_(command.input), result_(result) {
    Pipe input = make_pipe();
    Pipe output = make_pipe();
    Pipe errors = make_pipe();
    Pipe start_error = make_pipe();
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) throw BackendError(fmt::format("cannot start a process: {}", std::strerror(errno)));
    if (pid_ == 0) {
      become(command.arguments, parent, input.read_end.get(), output.write_end.get(), errors.write_end.get(),
             start_error.write_end.get());
    }
    start_error.write_end.close();
    // exec closes the other end, so this waits for no longer than that takes.
    if (read(start_error.read_end.get(), &result_.start_error, sizeof result_.start_error) > 0) return;
    ended_ = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    if (ended_.get() < 0) give_up(errno);
    input_ = std::move(input.write_end);
    output_ = std::move(output.read_end);
    errors_ = std::move(errors.read_end);
    for (const FileDescriptor* end : {&input_, &output_, &errors_}) do_not_block(*end);
    if (input_text_.empty()) input_.close();
  }
  ~RunningCommand() { end(); }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  bool is_running() const { return ended_.get() >= 0; }

  // A descriptor of -1 is not waited for.
  std::array<pollfd, 4> wants() const {
    return {{{ended_.get(), POLLIN, 0},
             {input_.get(), POLLOUT, 0},
             {output_.get(), POLLIN, 0},
             {errors_.get(), POLLIN, 0}}};
  }

  void handle(std::span<const pollfd> events) {
    if (events[1].revents != 0) write_input();
    if (events[2].revents != 0) read_output();
    if (events[3].revents != 0) read_into(errors_, result_.errors);
    if (events[0].revents != 0) finish();
  }

  void kill_late() {
    result_.late = true;
    finish();
  }

 private:
  // What has been written by now is read, but nobody waits for the end of the pipes: a process that stays behind on
  // purpose, as the shared connection of ssh's ControlPersist does, holds them open.
  void finish() {
    read_output();
    read_into(errors_, result_.errors);
    const int status = end();
    result_.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  int end() {
    int status = 0;
    if (pid_ > 0) {
      kill(-pid_, SIGKILL);  // its session's group; our child is not reaped yet, so the id is still its own
      while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
      }
    }
    pid_ = -1;
    for (FileDescriptor* descriptor : {&ended_, &input_, &output_, &errors_}) descriptor->close();
    return status;
  }

  [[noreturn]] void give_up(int why) {
    end();
    throw BackendError(fmt::format("cannot watch a process: {}", std::strerror(why)));
  }

  void write_input() {
    const ssize_t count = write(input_.get(), input_text_.data() + written_, input_text_.size() - written_);
    if (count > 0) written_ += static_cast<size_t>(count);
    const bool nobody_reads = count < 0 && errno != EAGAIN && errno != EINTR;
    if (nobody_reads || written_ == input_text_.size()) input_.close();
  }

  void read_output() {
    const size_t before = result_.output.size();
    read_into(output_, result_.output);
    if (result_.output.size() > before) result_.last_output_at = std::chrono::system_clock::now();
  }

  static void read_into(FileDescriptor& from, std::string& text) {
    if (from.get() < 0) return;
    std::array<char, size_t{64} * 1024> buffer;
    for (;;) {
      const ssize_t count = read(from.get(), buffer.data(), buffer.size());
      if (count > 0) {
        text.append(buffer.data(), static_cast<size_t>(count));
      } else if (count == 0) {
        return from.close();
      } else if (errno != EINTR) {
        return;
      }
    }
  }

  const std::string& input_text_;
  CommandResult& result_;
  size_t written_ = 0;
  pid_t pid_ = -1;
  FileDescriptor ended_;  // a pidfd, readable when the process has ended; closed when that was noticed
  FileDescriptor input_;
  FileDescriptor output_;
  FileDescriptor errors_;
};

int milliseconds_until(std::optional<Clock::time_point> deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long>(left, 0, 1 << 30));
}

using RunningCommands = std::vector<std::unique_ptr<RunningCommand>>;

void wait_and_handle(RunningCommands& running, std::optional<Clock::time_point> deadline) {
  std::vector<pollfd> waiting;
  for (const auto& command : running) {
    for (const pollfd& want : command->wants()) waiting.push_back(want);
  }
  if (poll(waiting.data(), waiting.size(), milliseconds_until(deadline)) < 0) {
    if (errno == EINTR) return;
    throw BackendError(fmt::format("poll: {}", std::strerror(errno)));
  }
  const std::span<const pollfd> events(waiting);
  for (size_t i = 0; i < running.size(); ++i) running[i]->handle(events.subspan(4 * i, 4));
}

}  // namespace

std::vector<CommandResult> run_commands(const std::vector<Command>& commands,
                                        std::optional<std::chrono::milliseconds> limit) {
  const IgnoredBrokenPipes ignored_broken_pipes;
  std::optional<Clock::time_point> deadline;
  if (limit) deadline = Clock::now() + *limit;
  std::vector<CommandResult> results(commands.size());
  RunningCommands running;
  size_t next = 0;
  while (next < commands.size() || !running.empty()) {
    for (; next < commands.size() && running.size() < most_at_once; ++next) {
      running.push_back(std::make_unique<RunningCommand>(commands[next], results[next]));
    }
    std::erase_if(running, [](const auto& command) { return !command->is_running(); });
    if (running.empty()) continue;
    wait_and_handle(running, deadline);
    if (deadline && Clock::now() >= *deadline) {
      for (const auto& command : running) {
        if (command->is_running()) command->kill_late();
      }
    }
  }
  return results;
}

}  // namespace fedrun::launcher
