// Shows what ranks, mpirun and fedrun say: lines whole, errors once, and to files where wanted.
#pragma once

#include <fedrun/launcher/line_splitter.h>
#include <fedrun/launcher/pending_output.h>
#include <fedrun/launcher/rank_files.h>
#include <fedrun/launcher/rank_reports.h>
#include <fedrun/launcher/run_record.h>
#include <fedrun/launcher/screen.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

class RunDisplay {
 public:
  struct Options {
    bool prefix = true;
    bool timestamps = false;
    bool show_all = false;  // neither repeated errors nor those of victims are left out
    std::optional<std::string> output_directory;
  };

  static Screen::Style screen_style(const Options& options, int ranks);

  // Throws UsageError when the output directory cannot be written.
  RunDisplay(const Options& options, RunRecord& record);

  void show_rank(int rank, RankStream stream, std::string_view bytes);
  void end_rank(int rank);  // shows the rest of what it wrote, but for an error that it reported
  std::string take_report(int rank);
  void show_lines(std::string_view lines);  // fedrun's or mpirun's own, to standard error

  // Shows unfinished lines of ranks that have been silent for a while, such as prompts.
  void release(RunClock::time_point now);
  std::optional<RunClock::time_point> next_release() const;

  const RankReports& reports() const { return reports_; }
  // Do the rank's last lines still stand at the bottom, so that they need not be shown again?
  bool shows_last_lines_of(int rank) const;

  // Standard output and standard error; the second stays empty where both are the same terminal or file.
  std::array<PendingOutput, 2>& pending() { return pending_; }
  size_t pending_bytes() const { return pending_[0].size() + pending_[1].size(); }

 private:
  struct RankLines {
    LineSplitter splitter;
    RunClock::time_point last_fed;
  };

  size_t target(RankStream stream) const { return one_target_ || stream == RankStream::output ? 0 : 1; }
  RankLines& lines(int rank, RankStream stream) {
    return lines_[static_cast<size_t>(rank)][stream == RankStream::output ? 0 : 1];
  }
  std::optional<RunClock::time_point> due(int rank, RankStream stream) const;
  void show_piece(int rank, RankStream stream, const std::string& piece);
  void show_report(int rank);

  RunRecord& record_;
  bool one_target_;
  std::array<PendingOutput, 2> pending_{PendingOutput(1), PendingOutput(2)};
  std::vector<Screen> screens_;  // one for each target
  std::vector<std::array<RankLines, 2>> lines_;
  RankReports reports_;
  std::optional<RankFiles> files_;
};

}  // namespace fedrun::launcher
