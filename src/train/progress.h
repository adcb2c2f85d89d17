// Shows how far an epoch is: a bar on a terminal, nothing elsewhere, where the plain lines of the program say enough.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace fedrun {

struct ProgressOptions {
  int terminal_columns = 0;  // 0: not a terminal, so the bar stays silent
  std::size_t total_samples = 0;
  // Where the caller's count of seconds stands when the bar begins, if it does not begin at 0.
  double communication_seconds = 0;
};

// What the bar cannot know by itself; what is not given is not shown.
struct ProgressValues {
  std::optional<double> loss{};
  // How long this rank has waited for others, such as DistributedOptimizer tells; the bar shows its share of the time.
  std::optional<double> communication_seconds{};
};

// "[===>  ]  52 % · 31,200/60,000 · 3,205 samples/s · loss 0.123 · 4 % communicating · 9 s left". Where the terminal is
// too narrow, parts are left out, the least important first.
std::string render_progress(const ProgressOptions& options, std::size_t samples_done, double seconds,
                            const ProgressValues& values = {});

// Draws on standard output, in the line below everything that was printed. Use it on one rank only.
class ProgressBar {
 public:
  explicit ProgressBar(const ProgressOptions& options) : options_(options) {}
  ~ProgressBar() { erase(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Redraws at most ten times a second.
  void advance(std::size_t samples, const ProgressValues& values = {});

  // Prints a line above the bar.
  void print_line(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;

  void draw();
  void erase();

  ProgressOptions options_;
  std::size_t samples_done_ = 0;
  ProgressValues values_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_drawn_{};
  bool visible_ = false;
};

}  // namespace fedrun
