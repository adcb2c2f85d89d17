#include <fedrun/train/progress.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <vector>

namespace fedrun {
namespace {

std::string with_thousands(std::size_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, 1, ',');
  return digits;
}

std::string loss_text(double loss) {
  const double size = std::abs(loss);
  const bool is_handy = size == 0 || !std::isfinite(loss) || (size >= 0.001 && size < 100'000);
  return is_handy ? fmt::format("loss {:.3f}", loss) : fmt::format("loss {:.2e}", loss);
}

std::string time_left_text(double seconds) {
  constexpr double minute = 60;
  constexpr double hour = 60 * minute;
  if (seconds < 2 * minute) return fmt::format("{:.0f} s left", seconds);
  if (seconds < 2 * hour) return fmt::format("{:.0f} min left", seconds / minute);
  return fmt::format("{:.1f} h left", seconds / hour);
}

// UTF-8 marks all bytes of a character but the first.
int columns_of(const std::string& text) {
  return static_cast<int>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

// One number of the line; those of the lowest rank are kept longest.
struct Part {
  std::string text;
  int rank = 0;
};

std::string join(const std::vector<Part>& parts) {
  std::string line;
  for (const Part& part : parts) line += (line.empty() ? "" : " · ") + part.text;
  return line;
}

std::vector<Part> parts_of(const ProgressOptions& options, std::size_t samples_done, double seconds, double share,
                           const ProgressValues& values) {
  const double rate = seconds > 0 ? static_cast<double>(samples_done) / seconds : 0;
  std::vector<Part> parts = {
      {fmt::format("{:3.0f} %", 100 * share), 0},
      {fmt::format("{}/{}", with_thousands(samples_done), with_thousands(options.total_samples)), 4},
      {fmt::format("{} samples/s", with_thousands(static_cast<std::size_t>(rate))), 3}};
  if (values.loss) parts.push_back({loss_text(*values.loss), 2});
  if (values.communication_seconds && seconds > 0) {
    const double waited = *values.communication_seconds - options.communication_seconds;
    parts.push_back({fmt::format("{:.0f} % communicating", 100 * std::clamp(waited / seconds, 0.0, 1.0)), 5});
  }
  if (share > 0) parts.push_back({time_left_text(seconds * (1 - share) / share), 1});
  return parts;
}

}  // namespace

std::string render_progress(const ProgressOptions& options, std::size_t samples_done, double seconds,
                            const ProgressValues& values) {
  const double share =
      options.total_samples == 0
          ? 1.0
          : std::min(1.0, static_cast<double>(samples_done) / static_cast<double>(options.total_samples));
  std::vector<Part> parts = parts_of(options, samples_done, seconds, share, values);
  const auto room = [&] { return options.terminal_columns - 4 - columns_of(join(parts)); };
  constexpr int shortest_bar = 8;
  while (room() < shortest_bar && parts.size() > 1) parts.erase(std::ranges::max_element(parts, {}, &Part::rank));
  if (room() < shortest_bar) return parts.front().text;
  const int width = std::min(room(), 40);
  const int filled = static_cast<int>(share * width);
  const std::string_view head = filled > 0 && filled < width ? ">" : "";
  return fmt::format("[{0:=<{1}}{2}{0: <{3}}] {4}", "", filled - static_cast<int>(head.size()), head, width - filled,
                     join(parts));
}

void ProgressBar::advance(std::size_t samples, const ProgressValues& values) {
  samples_done_ += samples;
  values_ = values;
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
  // ESC[K clears what was longer.
  std::printf("\r%s\x1b[K", render_progress(options_, samples_done_, seconds, values_).c_str());
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
