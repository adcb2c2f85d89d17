#include <fedrun/core/error.h>
#include <fedrun/launcher/child_process.h>
#include <fedrun/launcher/supervise.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fedrun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How long an unfinished line that may be part of a message waits for its rest.
constexpr milliseconds hold_time{100};
// `timeout` and some shells send the same signal twice, to the process and to its group; people are slower.
constexpr milliseconds second_signal_after{250};
// mpirun gives stubborn ranks 2 s; if it takes longer, it hangs itself.
constexpr std::chrono::seconds orderly_end_within{4};
// While the reader of our output is slow, we stop reading from mpirun here, so that nothing grows without limit.
constexpr size_t most_pending_bytes = size_t{64} * 1024;
// After a stop we must read on, because mpirun cannot end the ranks while it waits for room in its pipe. Then this much
// is kept for a slow reader, and the rest is dropped.
constexpr size_t most_pending_bytes_after_stop = 16 << 20;

// Blocks SIGCHLD and the stop signals, so that a signalfd gets them. What was ignored before, as under nohup, stays so.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&blocked_);
    sigaddset(&blocked_, SIGCHLD);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction action = {};
      sigaction(signal, nullptr, &action);
      if (action.sa_handler != SIG_IGN) sigaddset(&blocked_, signal);
    }
    sigprocmask(SIG_BLOCK, &blocked_, &before_);
    descriptor_ = FileDescriptor(signalfd(-1, &blocked_, SFD_CLOEXEC | SFD_NONBLOCK));
    if (descriptor_.get() < 0) throw BackendError(fmt::format("signalfd: {}", std::strerror(errno)));
  }
  ~BlockedSignals() { restore(); }

  void restore() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  const sigset_t& before() const { return before_; }
  int descriptor() const { return descriptor_.get(); }

 private:
  sigset_t blocked_;
  sigset_t before_;
  FileDescriptor descriptor_;
};

// Text on its way to standard error.
class PendingOutput {
 public:
  size_t size() const { return text_.size() - written_; }
  bool empty() const { return size() == 0; }

  void append(const std::string& text) {
    if (size() < most_pending_bytes_after_stop) text_ += text;
  }

  // A pipe that poll calls writable takes PIPE_BUF bytes without blocking, so a reader that has stopped cannot keep us
  // from our signals.
  void write_some() {
    const ssize_t count = write(STDERR_FILENO, text_.data() + written_, std::min<size_t>(size(), PIPE_BUF));
    if (count > 0) written_ += static_cast<size_t>(count);
    const bool nobody_can_read = count < 0 && errno != EINTR && errno != EAGAIN;
    if (nobody_can_read) written_ = text_.size();
    if (written_ > text_.size() / 2) text_.erase(0, std::exchange(written_, 0));
  }

 private:
  std::string text_;
  size_t written_ = 0;  // the beginning that is done; cut off when it is the larger part, so that bytes move only once
};

class Supervisor {
 public:
  Supervisor(const MpirunCommand& command, StderrFilter::Options filter_options)
      : filter_(filter_options), mpirun_(start(command, signals_.before())) {}

  int run() {
    while (!mpirun_status_) wait_and_handle();
    // After a success, what the ranks have left running is theirs to leave.
    if (stop_signal_ != 0 || *mpirun_status_ != 0) orphans_.end();
    read_errors();
    pending_.append(filter_.finish(ending()));
    signals_.restore();  // from here on a signal may end us as it ends any program, should nobody read what is pending
    while (!pending_.empty()) {
      pollfd waiting = {STDERR_FILENO, POLLOUT, 0};
      poll(&waiting, 1, -1);
      pending_.write_some();
    }
    return exit_code();
  }

 private:
  void wait_and_handle() {
    const bool may_read = pending_.size() < most_pending_bytes || stop_signal_ != 0;
    std::array<pollfd, 3> waiting = {{
        {signals_.descriptor(), POLLIN, 0},
        {may_read ? mpirun_.errors.get() : -1, POLLIN, 0},
        {pending_.empty() ? -1 : STDERR_FILENO, POLLOUT, 0},
    }};
    if (poll(waiting.data(), waiting.size(), milliseconds_to_wait()) < 0 && errno != EINTR) {
      throw BackendError(fmt::format("poll: {}", std::strerror(errno)));
    }
    if (waiting[0].revents != 0) read_signals();
    if (waiting[1].revents != 0) read_errors();
    if (waiting[2].revents != 0) pending_.write_some();
    const auto now = Clock::now();
    if (release_at_ && now >= *release_at_) release();
    if (kill_at_ && now >= *kill_at_) kill_mpirun();
  }

  int milliseconds_to_wait() const {
    if (!release_at_ && !kill_at_) return -1;
    const auto next =
        std::min(release_at_.value_or(Clock::time_point::max()), kill_at_.value_or(Clock::time_point::max()));
    return static_cast<int>(std::max<long>(0, std::chrono::ceil<milliseconds>(next - Clock::now()).count()));
  }

  void read_signals() {
    signalfd_siginfo info;
    while (read(signals_.descriptor(), &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGCHLD) {
        reap();
      } else {
        stop(static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL);
      }
    }
  }

  void reap() {
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid == mpirun_.pid) mpirun_status_ = status;
    }
  }

  void stop(int signal, bool from_terminal) {
    const auto now = Clock::now();
    if (stop_signal_ == 0) {
      stop_signal_ = signal;
      stopped_at_ = now;
      kill_at_ = now + orderly_end_within;
      const std::string_view after_echo = from_terminal ? "\n" : "";  // the terminal has just shown ^C
      pending_.append(
          fmt::format("{}fedrun: {}: ending all ranks; once more ends them at once\n", after_echo, strsignal(signal)));
      if (!(from_terminal && mpirun_.gets_terminal_signals)) signal_mpirun(SIGTERM);
    } else if (now - stopped_at_ > second_signal_after) {
      kill_mpirun();
    }
  }

  void signal_mpirun(int signal) {
    if (!mpirun_status_) kill(mpirun_.pid, signal);  // after its end the id may be another process's
  }

  // Its ranks on this machine become orphans; daemons on other hosts end theirs.
  void kill_mpirun() {
    kill_at_.reset();
    signal_mpirun(SIGKILL);
  }

  void read_errors() {
    std::array<char, size_t{64} * 1024> buffer;
    ssize_t count;
    while ((count = read(mpirun_.errors.get(), buffer.data(), buffer.size())) > 0) {
      pending_.append(filter_.feed({buffer.data(), static_cast<size_t>(count)}));
      if (!mpirun_status_) break;  // signals first
    }
    if (count == 0) mpirun_.errors.close();
    release_at_.reset();
    if (filter_.holds_text()) release_at_ = Clock::now() + hold_time;
  }

  void release() {
    release_at_.reset();
    pending_.append(filter_.release());
  }

  MpirunEnding ending() const {
    return {.exit_code = WIFEXITED(*mpirun_status_) ? WEXITSTATUS(*mpirun_status_) : 0,
            .signal = WIFSIGNALED(*mpirun_status_) ? WTERMSIG(*mpirun_status_) : 0,
            .stopped_by_user = stop_signal_ != 0};
  }

  int exit_code() const {
    if (stop_signal_ != 0) return 128 + stop_signal_;
    return ending().signal != 0 ? 128 + ending().signal : ending().exit_code;
  }

  BlockedSignals signals_;  // these two before mpirun_, of which they must miss nothing
  Orphans orphans_;
  StderrFilter filter_;
  ChildProcess mpirun_;
  std::optional<int> mpirun_status_;  // as waitpid gives it; unset: still running
  PendingOutput pending_;
  int stop_signal_ = 0;
  Clock::time_point stopped_at_;
  std::optional<Clock::time_point> kill_at_;
  std::optional<Clock::time_point> release_at_;
};

}  // namespace

int supervise(const MpirunCommand& command, StderrFilter::Options filter_options) {
  return Supervisor(command, filter_options).run();
}

}  // namespace fedrun::launcher
