// Puts what all ranks write on one terminal or into one file: lines stay whole, with their rank in front.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace fedrun::launcher {

// A pure state machine: pieces of LineSplitter in, bytes to show out.
class Screen {
 public:
  struct Style {
    int ranks = 1;
    bool prefix = true;
    bool timestamps = false;
    bool terminal = false;  // ranks have colours, and a line that overwrites a progress bar erases it
  };

  explicit Screen(Style style) : style_(style) {}

  // What stands in front of a line takes so much of its width.
  static int prefix_columns(Style style);

  // A piece without an end is shown as the beginning of a line; if another rank writes before it goes on, that starts a
  // new line.
  std::string show(int rank, std::string_view piece, std::chrono::system_clock::time_point now);

  // Whole lines of fedrun's or mpirun's own.
  std::string show_lines(std::string_view lines);

  // How many lines of this rank stand below everything else.
  int lines_at_bottom(int rank) const { return rank == last_rank_ ? lines_at_bottom_ : 0; }

 private:
  std::string make_room(std::optional<int> rank);
  std::string prefix(int rank, std::chrono::system_clock::time_point now) const;
  void count_line(int rank);

  Style style_;
  std::optional<int> unfinished_;  // whose line has begun and not ended
  bool over_progress_bar_ = false;
  std::optional<int> last_rank_;
  int lines_at_bottom_ = 0;
};

}  // namespace fedrun::launcher
