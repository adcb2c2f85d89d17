// Turns what mpirun and the ranks write to standard error into what a user wants to read: everything the program says,
// each error once, and one line that says how the run failed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

// How mpirun ended.
struct MpirunEnding {
  int exit_code = 0;             // of mpirun, which is that of the first rank that failed
  int signal = 0;                // that ended mpirun itself; 0: none
  bool stopped_by_user = false;  // by Ctrl-C or a signal, so that no rank is to blame

  bool failed() const { return exit_code != 0 || signal != 0; }
};

// A pure state machine: bytes in, bytes to show out. Text that cannot belong to a message passes at once, even without
// a newline, so prompts and progress bars survive; the rest is held until it is complete.
class StderrFilter {
 public:
  // `show_mpirun_messages`: nothing of what mpirun says is left out.
  struct Options {
    bool show_mpirun_messages = false;
  };

  explicit StderrFilter(Options options) : options_(options) {}

  // Each returns what is to be shown now.
  std::string feed(std::string_view bytes);
  std::string release();  // for when nothing has come for a while: shows what is held
  std::string finish(const MpirunEnding& ending);

  bool holds_text() const { return state_ != State::passing || !line_.empty(); }

 private:
  // after_ruler: the next line decides whether a block is held. In the other states `held_` has what was read so far.
  enum class State { passing, after_ruler, in_block, in_report };

  struct Report {
    std::string error;       // all its lines
    std::vector<int> ranks;  // the first one's report was shown
  };

  bool may_matter(std::string_view start_of_line) const;
  void take_line(std::string line);
  void begin(State state, std::string line);
  void end_block();
  void end_report();
  void settle();
  void settle_all();
  std::string take_shown();
  std::string repeated_reports() const;
  bool blames_victim() const;
  std::string last_line(const MpirunEnding& ending) const;

  Options options_;
  State state_ = State::passing;
  std::string held_;
  std::string line_;                // the beginning of a line that may matter
  bool in_shown_line_ = false;      // the beginning of this line was shown, so its rest follows at once
  std::string shown_;               // what the current call will return
  bool ended_with_newline_ = true;  // what the last call returned
  std::vector<Report> reports_;
  std::string victims_;  // reports of ranks that only noticed the end of another
  std::vector<int> victim_ranks_;
  std::string explanation_;          // the first that mpirun gave
  std::string complaints_;           // of mpirun about itself; shown only when nothing else explains the failure
  bool showed_other_block_ = false;  // such as one about a host that cannot be reached
};

}  // namespace fedrun::launcher
