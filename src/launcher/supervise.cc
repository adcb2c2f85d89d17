#include <fedrun/core/error.h>
#include <fedrun/launcher/blocked_signals.h>
#include <fedrun/launcher/child_process.h>
#include <fedrun/launcher/debugger.h>
#include <fedrun/launcher/failure_story.h>
#include <fedrun/launcher/frame.h>
#include <fedrun/launcher/mpirun_messages.h>
#include <fedrun/launcher/mpirun_text.h>
#include <fedrun/launcher/start_watch.h>
#include <fedrun/launcher/supervise.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>
#include <utility>
#include <variant>

namespace fedrun::launcher {
namespace {

using std::chrono::milliseconds;
using TimePoint = RunClock::time_point;

// How long an unfinished message of mpirun's waits for its rest.
constexpr milliseconds hold_time{100};
// `timeout` and some shells send the same signal twice, to the process and to its group; people are slower.
constexpr milliseconds second_signal_after{250};
// mpirun gives stubborn ranks 2 s; if it takes longer, it hangs itself.
constexpr std::chrono::seconds orderly_end_within{4};
// While the reader of our output is slow, we stop reading from mpirun here, so that nothing grows without limit.
constexpr size_t most_pending_bytes = size_t{64} * 1024;

class Supervisor {
 public:
  Supervisor(const MpirunCommand& command, const Supervision& supervision)
      : supervision_(supervision),
        record_(supervision.hosts, RunClock::now()),
        display_(supervision.display, record_),
        mpirun_text_(supervision.show_mpirun_messages),
        start_watch_(supervision.start_timeout),
        mpirun_(start(command, signals_.before())) {
    if (supervision.timeout) end_at_ = record_.started_at + *supervision.timeout;
  }

  int run() {
    while (!mpirun_status_) wait_and_handle();
    // After a success, what the ranks have left running is theirs to leave.
    if (is_stopping() || *mpirun_status_ != 0) orphans_.end();
    read_mpirun();
    show_text(reader_.rest());
    display_.show_lines(mpirun_text_.release());
    for (int rank = 0; rank < ranks(); ++rank) display_.end_rank(rank);
    if (*mpirun_status_ == 0) display_.show_lines(mpirun_text_.complaints());
    if (!is_stopping() && *mpirun_status_ != 0) {
      explain_failure();
    } else {
      display_.show_lines(take_reports());
    }
    signals_.restore();  // from here on a signal may end us as it ends any program, should nobody read what is pending
    write_out();
    return exit_code();
  }

 private:
  // --- the loop
  // -------------------------------------------------------------------------------------------------------

  void wait_and_handle() {
    const bool may_read = display_.pending_bytes() < most_pending_bytes || is_stopping();
    std::array<pollfd, 4> waiting = {{
        {signals_.descriptor(), POLLIN, 0},
        {may_read ? mpirun_.errors.get() : -1, POLLIN, 0},
        writable(display_.pending()[0]),
        writable(display_.pending()[1]),
    }};
    if (poll(waiting.data(), waiting.size(), milliseconds_to_wait()) < 0 && errno != EINTR) {
      throw BackendError(fmt::format("poll: {}", std::strerror(errno)));
    }
    if (waiting[0].revents != 0) signals_.read_all([&](const signalfd_siginfo& info) { handle(info); });
    if (waiting[1].revents != 0) read_mpirun();
    for (const size_t i : {0, 1}) {
      if (waiting[2 + i].revents != 0) write_some(display_.pending()[i]);
    }
    watch_the_clock(RunClock::now());
  }

  static pollfd writable(const PendingOutput& output) {
    return {output.empty() ? -1 : output.descriptor(), POLLOUT, 0};
  }

  int milliseconds_to_wait() const {
    TimePoint next = TimePoint::max();
    const auto start_watch = is_stopping() ? std::nullopt : start_watch_.next(record_);
    for (const auto& due : {release_text_at_, kill_at_, end_at_, start_watch, display_.next_release()}) {
      next = std::min(next, due.value_or(TimePoint::max()));
    }
    if (next == TimePoint::max()) return -1;
    const auto wait = std::chrono::ceil<milliseconds>(next - RunClock::now()).count();
    return static_cast<int>(std::clamp<long>(wait, 0, INT_MAX));
  }

  void watch_the_clock(TimePoint now) {
    if (release_text_at_ && now >= *release_text_at_) {
      release_text_at_.reset();
      display_.show_lines(mpirun_text_.feed(reader_.rest()) + mpirun_text_.release());
    }
    display_.release(now);
    if (kill_at_ && now >= *kill_at_) kill_mpirun();
    if (is_stopping()) return;
    if (end_at_ && now >= *end_at_) {
      give_up(fmt::format("the run has taken {} s, its --timeout", supervision_.timeout->count()));
    } else if (const auto watch_at = start_watch_.next(record_); watch_at && now >= *watch_at) {
      display_.show_lines(start_watch_.progress(record_, now));
      if (const auto problem = start_watch_.problem(record_, now)) give_up(*problem);
    }
  }

  void write_some(PendingOutput& output) {
    const int problem_before = output.problem();
    output.write_some();
    if (output.problem() == 0 || problem_before != 0) return;
    const char* name = output.descriptor() == STDOUT_FILENO ? "standard output" : "standard error";
    if (output.problem() == EPIPE && !is_stopping()) {
      stop(SIGPIPE, fmt::format("fedrun: nobody reads {} any more: ending all ranks\n", name));
    } else {
      display_.show_lines(fmt::format("fedrun: cannot write to {}: {}\n", name, std::strerror(output.problem())));
    }
  }

  void write_out() {
    for (PendingOutput& output : display_.pending()) {
      while (!output.empty()) {
        pollfd waiting = {output.descriptor(), POLLOUT, 0};
        poll(&waiting, 1, -1);
        output.write_some();
      }
    }
  }

  // --- what comes from mpirun
  // -----------------------------------------------------------------------------------------

  void read_mpirun() {
    std::array<char, size_t{64} * 1024> buffer;
    ssize_t count;
    while ((count = read(mpirun_.errors.get(), buffer.data(), buffer.size())) > 0) {
      for (const FrameReader::Piece& piece : reader_.feed({buffer.data(), static_cast<size_t>(count)})) {
        if (const auto* frame = std::get_if<Frame>(&piece)) {
          take(*frame);
        } else {
          show_text(std::get<std::string>(piece));
        }
      }
      if (!mpirun_status_) break;  // signals first
    }
    if (count == 0) mpirun_.errors.close();
    release_text_at_.reset();
    if (mpirun_text_.holds_text() || reader_.holds_text()) release_text_at_ = RunClock::now() + hold_time;
  }

  void show_text(const std::string& text) { display_.show_lines(mpirun_text_.feed(text)); }

  void take(const Frame& frame) {
    if (static_cast<size_t>(frame.rank) >= record_.ranks.size()) return;  // not one of this run
    RankRecord& rank = record_.ranks[static_cast<size_t>(frame.rank)];
    switch (frame.kind) {
      case FrameKind::output:
        return display_.show_rank(frame.rank, RankStream::output, frame.payload);
      case FrameKind::errors:
        return display_.show_rank(frame.rank, RankStream::errors, frame.payload);
      case FrameKind::started:
        rank.started = true;
        rank.host = parse_rank_start(frame.payload).host;
        return tell_how_to_debug(frame.rank);
      case FrameKind::begun:
        rank.begun = true;
        return;
      case FrameKind::joined:
        rank.begun = rank.joined = true;
        return;
      case FrameKind::ended:
        record_.end(frame.rank, parse_rank_ending(frame.payload), RunClock::now());
        return display_.end_rank(frame.rank);
    }
  }

  void tell_how_to_debug(int rank) {
    const KeeperOptions& keeper = supervision_.keeper;
    if (keeper.debug_rank != rank) return;
    const std::string& host = record_.ranks[static_cast<size_t>(rank)].host;
    display_.show_lines(fmt::format("fedrun: rank {} waits for a debugger: {}\n", rank,
                                    how_to_attach(keeper.debugger, rank, host, keeper.program[0])));
  }

  // --- the end
  // --------------------------------------------------------------------------------------------------------

  void handle(const signalfd_siginfo& info) {
    if (info.ssi_signo == SIGCHLD) return reap();
    const int signal = static_cast<int>(info.ssi_signo);
    const bool from_terminal = info.ssi_code == SI_KERNEL;
    if (!is_stopping()) {
      const std::string_view after_echo = from_terminal ? "\n" : "";  // the terminal has just shown ^C
      const bool reaches_mpirun = from_terminal && mpirun_.gets_terminal_signals;
      stop(signal,
           fmt::format("{}fedrun: {}: ending all ranks; once more ends them at once\n", after_echo, strsignal(signal)),
           reaches_mpirun);
    } else if (RunClock::now() - stopped_at_ > second_signal_after) {
      kill_mpirun();
    }
  }

  void reap() {
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid == mpirun_.pid) mpirun_status_ = status;
    }
  }

  bool is_stopping() const { return stop_code_ != 0; }

  void stop(int signal, const std::string& message, bool mpirun_knows = false) {
    begin_stop(128 + signal, message);
    if (!mpirun_knows) signal_mpirun(SIGTERM);
  }

  void give_up(const std::string& why) {
    begin_stop(exit_timeout, fmt::format("fedrun: {}: ending all ranks\n", why));
    signal_mpirun(SIGTERM);
  }

  void begin_stop(int code, const std::string& message) {
    stop_code_ = code;
    stopped_at_ = RunClock::now();
    kill_at_ = stopped_at_ + orderly_end_within;
    end_at_.reset();
    display_.show_lines(message);
  }

  void signal_mpirun(int signal) {
    if (!mpirun_status_) kill(mpirun_.pid, signal);  // after its end the id may be another process's
  }

  // Its ranks on this machine become orphans; daemons on other hosts end theirs.
  void kill_mpirun() {
    kill_at_.reset();
    signal_mpirun(SIGKILL);
  }

  void explain_failure() {
    const std::optional<int> cause = find_cause(record_, display_.reports());
    const bool last_lines_shown = cause && display_.shows_last_lines_of(*cause);
    const std::string report = cause ? display_.take_report(*cause) : "";
    const RankReports& reports = display_.reports();
    display_.show_lines(take_reports() + report);
    display_.show_lines(reports.repeated());
    if (mpirun_knows_better(cause)) {
      display_.show_lines(fmt::format("fedrun: {}\n", mpirun_text_.explanation()));
      return tell_who_is_missing();
    }
    if (!cause) return explain_mpirun();
    if (reports.lost_a_peer(*cause)) {
      display_.show_lines(reports.of_victims());
    } else if (!reports.is_told(*cause) && !last_lines_shown) {
      display_.show_lines(last_lines(record_, *cause));
    }
    display_.show_lines(
        fmt::format("fedrun: {}\n", how_it_ended(record_, *cause, std::chrono::system_clock::now(), RunClock::now())));
  }

  // With its host, a rank is lost without a word.
  void tell_who_is_missing() {
    const auto missing = ranks_that(record_, [](const RankRecord& rank) { return rank.started && !rank.ending; });
    if (missing.empty()) return;
    display_.show_lines(fmt::format("fedrun: nothing was heard of the end of {}\n", by_host(record_, missing)));
  }

  std::string take_reports() {
    std::string reports;
    for (int rank = 0; rank < ranks(); ++rank) reports += display_.take_report(rank);
    return reports;
  }

  int ranks() const { return static_cast<int>(record_.ranks.size()); }

  // The process around a rank was killed and could not say so, or a rank left without an error. Not when mpirun names a
  // rank that only lost another: then that other one does not answer, has not ended, and nobody else can tell.
  bool mpirun_knows_better(std::optional<int> cause) const {
    const RankReports& reports = display_.reports();
    const std::string_view explanation = mpirun_text_.explanation();
    if (explanation.empty() || (cause && !reports.lost_a_peer(*cause))) return false;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (reports.lost_a_peer(rank) && explanation.starts_with(fmt::format("rank {} exited ", rank))) return false;
    }
    return true;
  }

  void explain_mpirun() {
    display_.show_lines(mpirun_text_.complaints());
    if (WIFSIGNALED(*mpirun_status_)) {
      display_.show_lines(fmt::format("fedrun: mpirun was ended by {}\n", signal_in_words(WTERMSIG(*mpirun_status_))));
    } else if (!mpirun_text_.showed_other_block()) {
      display_.show_lines(fmt::format("fedrun: mpirun exited with code {}\n", WEXITSTATUS(*mpirun_status_)));
    }
  }

  int exit_code() const {
    if (is_stopping()) return stop_code_;
    if (WIFSIGNALED(*mpirun_status_)) return 128 + WTERMSIG(*mpirun_status_);
    if (*mpirun_status_ == 0) return 0;
    const auto cause = find_cause(record_, display_.reports());
    if (mpirun_knows_better(cause)) return WEXITSTATUS(*mpirun_status_);
    return cause ? record_.ranks[static_cast<size_t>(*cause)].ending->code_for_shells() : WEXITSTATUS(*mpirun_status_);
  }

  const Supervision& supervision_;
  BlockedSignals signals_;  // these two before mpirun_, of which they must miss nothing
  Orphans orphans_;
  RunRecord record_;
  RunDisplay display_;
  FrameReader reader_;
  MpirunText mpirun_text_;
  StartWatch start_watch_;
  ChildProcess mpirun_;
  std::optional<int> mpirun_status_;  // as waitpid gives it; unset: still running
  int stop_code_ = 0;                 // fedrun's exit code once it has decided to end the run; 0: it has not
  TimePoint stopped_at_;
  std::optional<TimePoint> kill_at_;
  std::optional<TimePoint> end_at_;
  std::optional<TimePoint> release_text_at_;
};

}  // namespace

int supervise(const MpirunCommand& command, const Supervision& supervision) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away ends the run in order, not us alone
  return Supervisor(command, supervision).run();
}

}  // namespace fedrun::launcher
