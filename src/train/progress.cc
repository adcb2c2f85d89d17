#include <fedrun/train/progress.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace fedrun {
namespace {

std::string with_thousands(std::size_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, 1, ',');
  return digits;
}

}  // namespace

std::string render_progress(const ProgressOptions& options, std::size_t samples_done, double seconds) {
  const double share =
      options.total_samples == 0
          ? 1.0
          : std::min(1.0, static_cast<double>(samples_done) / static_cast<double>(options.total_samples));
  const double rate = seconds > 0 ? static_cast<double>(samples_done) / seconds : 0;
  const double seconds_left = share > 0 ? seconds * (1 - share) / share : 0;
  const std::string numbers =
      fmt::format("{:3.0f} % · {}/{} · {} samples/s · {:.0f} s left", 100 * share, with_thousands(samples_done),
                  with_thousands(options.total_samples), with_thousands(static_cast<std::size_t>(rate)), seconds_left);
  constexpr int dot_extra_bytes = 3;  // each "·" takes two bytes and one column
  const int room = options.terminal_columns - 4 - static_cast<int>(numbers.size()) + dot_extra_bytes;
  constexpr int shortest_bar = 8;
  if (room < shortest_bar) return fmt::format("{:3.0f} %", 100 * share);
  const int width = std::min(room, 40);
  const int filled = static_cast<int>(share * width);
  return fmt::format("[{0:=<{1}}{0: <{2}}] {3}", "", filled, width - filled, numbers);
}

void ProgressBar::advance(std::size_t samples) {
  samples_done_ += samples;
  if (options_.terminal_columns == 0 || Clock::now() - last_drawn_ < std::chrono::milliseconds(100)) return;
  draw();
}

void ProgressBar::print_line(const std::string& line) {
  erase();
  std::printf("%s\n", line.c_str());
  if (options_.terminal_columns != 0) draw();
  std::fflush(stdout);
}

void ProgressBar::draw() {
  last_drawn_ = Clock::now();
  const double seconds = std::chrono::duration<double>(last_drawn_ - start_).count();
  std::printf("\r%s\x1b[K", render_progress(options_, samples_done_, seconds).c_str());  // ESC[K clears what was longer
  std::fflush(stdout);
  visible_ = true;
}

void ProgressBar::erase() {
  if (!visible_) return;
  std::fputs("\r\x1b[K", stdout);
  std::fflush(stdout);
  visible_ = false;
}

}  // namespace fedrun
