#include <fcntl.h>
#include <fedrun/core/error.h>
#include <fedrun/core/host_name.h>
#include <fedrun/core/run_env.h>
#include <fedrun/launcher/blocked_signals.h>
#include <fedrun/launcher/debugger.h>
#include <fedrun/launcher/exec_strings.h>
#include <fedrun/launcher/frame.h>
#include <fedrun/launcher/memory_kills.h>
#include <fedrun/launcher/mpirun_leftovers.h>
#include <fedrun/launcher/pending_output.h>
#include <fedrun/launcher/program.h>
#include <fedrun/launcher/rank_child.h>
#include <fedrun/launcher/rank_events.h>
#include <fedrun/launcher/rank_keeper.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

namespace fedrun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// While mpirun does not take more, we stop reading, and the program waits.
constexpr size_t most_pending_bytes = size_t{64} * 1024;
// What processes that the rank has left behind still write is worth so long a wait.
constexpr milliseconds wait_for_last_words{200};
// A rank whose mpirun has died may save something, but not for long: fedrun waits for it.
constexpr milliseconds orderly_end_within{500};

int number_in_environment(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : fallback;
}

bool on_path(const char* program) {
  const char* path = std::getenv("PATH");
  return !find_problem(program, path != nullptr ? path : "/bin:/usr/bin");
}

std::vector<std::string> command_for(const KeeperOptions& options, int rank) {
  if (options.debug_rank != rank) return options.program;
  const DebuggerWindow window = {.xterm = std::getenv("DISPLAY") != nullptr && on_path("xterm"),
                                 .tmux = on_path("tmux")};
  return under_debugger(options.debugger, rank, options.program, window);
}

class RankKeeper {
 public:
  RankKeeper(int rank, const std::vector<std::string>& command)
      : rank_(rank), parent_(static_cast<int>(syscall(SYS_pidfd_open, getppid(), 0))) {
    if (getpgrp() != getpid()) setpgid(0, 0);  // mpirun has done it already; others that start ranks may not have
    // These are meant for the program, and reach it because it is in our process group.
    for (const int signal : {SIGPIPE, SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
    fcntl(STDERR_FILENO, F_SETFL, fcntl(STDERR_FILENO, F_GETFL) | O_NONBLOCK);
    child_ = start_rank(command, signals_.before(), number_in_environment("FEDRUN_TERMINAL_COLUMNS", 0));
    send(FrameKind::started, to_text(RankStart{host_name(), child_.pid}));
    if (child_.start_error != 0) problem_ = fmt::format("{}: {}", command[0], std::strerror(child_.start_error));
  }

  int run() {
    while (!status_ || (is_open(child_.output) || is_open(child_.errors))) {
      if (ended_at_ && Clock::now() > *ended_at_ + wait_for_last_words) break;
      wait_and_handle();
    }
    if (parent_died_) leave_nothing();
    send(FrameKind::ended, to_text(ending()));
    while (!pending_.empty() && pending_.problem() == 0 && !parent_died_) wait_and_handle();
    return ending().code_for_shells();
  }

 private:
  static bool is_open(const FileDescriptor& descriptor) { return descriptor.get() >= 0; }

  void send(FrameKind kind, std::string payload) { pending_.append(encode_frames({rank_, kind, std::move(payload)})); }

  void wait_and_handle() {
    const bool may_read = pending_.size() < most_pending_bytes;
    std::array<pollfd, 6> waiting = {{
        {signals_.descriptor(), POLLIN, 0},
        {parent_died_ ? -1 : parent_.get(), POLLIN, 0},
        {may_read ? child_.output.get() : -1, POLLIN, 0},
        {may_read ? child_.errors.get() : -1, POLLIN, 0},
        {child_.progress.get(), POLLIN, 0},
        {pending_.empty() ? -1 : STDERR_FILENO, POLLOUT, 0},
    }};
    poll(waiting.data(), waiting.size(), milliseconds_to_wait());
    if (waiting[0].revents != 0) signals_.read_all([&](const signalfd_siginfo& info) { handle(info); });
    if (waiting[1].revents != 0) end_without_parent();
    if (waiting[2].revents != 0) forward(child_.output, FrameKind::output);
    if (waiting[3].revents != 0) forward(child_.errors, FrameKind::errors);
    if (waiting[4].revents != 0) read_progress();
    if (waiting[5].revents != 0) pending_.write_some();
    if (kill_at_ && Clock::now() >= *kill_at_) {
      kill_at_.reset();
      if (!status_) kill(child_.pid, SIGKILL);
    }
  }

  int milliseconds_to_wait() const {
    if (ended_at_) return static_cast<int>(wait_for_last_words.count());
    return kill_at_ ? 50 : -1;
  }

  void handle(const signalfd_siginfo& info) {
    if (info.ssi_signo == SIGCHLD) {
      int status = 0;
      if (waitpid(child_.pid, &status, WNOHANG) == child_.pid) {
        status_ = status;
        ended_at_ = Clock::now();
      }
      return;
    }
    told_to_end_ = true;
    // mpirun signals the whole group; anybody else means the rank, and found us under its number.
    const bool reached_program = static_cast<pid_t>(info.ssi_pid) == getppid();
    if (!reached_program && !status_) kill(child_.pid, static_cast<int>(info.ssi_signo));
  }

  void end_without_parent() {
    parent_died_ = true;
    kill_at_ = Clock::now() + orderly_end_within;
    kill(-getpgrp(), SIGTERM);
  }

  // There is nobody to report to, and nobody else who would do it.
  [[noreturn]] static void leave_nothing() {
    remove_mpirun_leftovers();
    kill(-getpgrp(), SIGKILL);  // what the rank has started, and us
    _exit(EXIT_FAILURE);
  }

  void forward(FileDescriptor& from, FrameKind kind) {
    std::array<char, size_t{16} * 1024> buffer;
    const ssize_t count = read(from.get(), buffer.data(), buffer.size());
    if (count > 0) {
      send(kind, {buffer.data(), static_cast<size_t>(count)});
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
      from.close();  // a pseudo-terminal ends with EIO
    }
  }

  void read_progress() {
    char step = 0;
    const ssize_t count = read(child_.progress.get(), &step, 1);
    if (count == 1) {
      send(step == progress_joined ? FrameKind::joined : FrameKind::begun, {});
    } else if (count == 0) {
      child_.progress.close();
    }
  }

  RankEnding ending() const {
    RankEnding ending;
    ending.told_to_end = told_to_end_;
    ending.problem = problem_;
    if (!status_) return ending;
    if (WIFEXITED(*status_)) ending.exit_code = WEXITSTATUS(*status_);
    if (WIFSIGNALED(*status_)) ending.signal = WTERMSIG(*status_);
    if (child_.start_error != 0) ending.exit_code = child_.start_error == ENOENT ? 127 : 126;
    ending.out_of_memory = ending.signal == SIGKILL && count_memory_kills() > memory_kills_before_;
    return ending;
  }

  int rank_;
  FileDescriptor parent_;
  BlockedSignals signals_;
  long memory_kills_before_ = count_memory_kills();
  PendingOutput pending_{STDERR_FILENO};
  RankChild child_;
  std::string problem_;
  std::optional<int> status_;  // as waitpid gives it; unset: still running
  std::optional<Clock::time_point> ended_at_;
  std::optional<Clock::time_point> kill_at_;
  bool told_to_end_ = false;
  bool parent_died_ = false;
};

[[noreturn]] void become(const std::vector<std::string>& command) {
  const std::vector<char*> arguments = exec_strings(command);
  execvp(arguments[0], arguments.data());
  const int problem = errno;
  fmt::print(stderr, "fedrun: {}: {}\n", command[0], std::strerror(problem));
  std::exit(problem == ENOENT ? 127 : 126);
}

}  // namespace

int keep_rank(const KeeperOptions& options) {
  const int rank = number_in_environment("OMPI_COMM_WORLD_RANK", 0);
  if (options.binding != Binding::none) {
    bind_this_process(processors_for(options.binding, usable_processors(),
                                     number_in_environment("OMPI_COMM_WORLD_LOCAL_RANK", 0),
                                     number_in_environment("OMPI_COMM_WORLD_LOCAL_SIZE", 1)));
  }
  const std::vector<std::string> command = command_for(options, rank);
  if (!options.framed) become(command);
  return RankKeeper(rank, command).run();
}

}  // namespace fedrun::launcher
