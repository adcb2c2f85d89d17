// Shows how far an epoch is: a bar on a terminal, nothing elsewhere, where the plain lines of the program say enough.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace fedrun {

struct ProgressOptions {
  int terminal_columns = 0;  // 0: not a terminal, so the bar stays silent
  std::size_t total_samples = 0;
};

// "[=====>    ]  52 % · 31,200/60,000 · 3,205 samples/s · 9 s left", cut to fit the terminal.
std::string render_progress(const ProgressOptions& options, std::size_t samples_done, double seconds);

// Draws on standard output, in the line below everything that was printed. Use it on one rank only.
class ProgressBar {
 public:
  explicit ProgressBar(const ProgressOptions& options) : options_(options) {}
  ~ProgressBar() { erase(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Redraws at most ten times a second.
  void advance(std::size_t samples);

  // Prints a line above the bar.
  void print_line(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;

  void draw();
  void erase();

  ProgressOptions options_;
  std::size_t samples_done_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_drawn_{};
  bool visible_ = false;
};

}  // namespace fedrun
