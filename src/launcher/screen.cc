#include <fedrun/launcher/screen.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>

namespace fedrun::launcher {
namespace {

constexpr std::string_view erase_to_end_of_line = "\x1b[K";
constexpr std::array colours = {36, 33, 32, 35, 34, 31};  // cyan, yellow, green, magenta, blue, red

}  // namespace

int Screen::prefix_columns(Style style) {
  style.terminal = false;  // colours take no room
  return static_cast<int>(Screen(style).prefix(0, {}).size());
}

std::string Screen::show(int rank, std::string_view piece, std::chrono::system_clock::time_point now) {
  std::string text = make_room(rank);
  if (unfinished_ != rank) text += prefix(rank, now);
  text += piece;
  const bool ended = piece.ends_with('\n') || piece.ends_with('\r');
  unfinished_ = ended ? std::nullopt : std::optional(rank);
  over_progress_bar_ = piece.ends_with('\r');
  if (piece.ends_with('\n')) count_line(rank);
  return text;
}

std::string Screen::show_lines(std::string_view lines) {
  if (lines.empty()) return {};
  last_rank_.reset();
  return make_room(std::nullopt).append(lines);
}

// Ends a line that another rank has begun.
std::string Screen::make_room(std::optional<int> rank) {
  std::string text;
  if (unfinished_ && unfinished_ != rank) {
    text += '\n';
    unfinished_.reset();
  }
  if (over_progress_bar_ && style_.terminal) text += erase_to_end_of_line;
  over_progress_bar_ = false;
  return text;
}

std::string Screen::prefix(int rank, std::chrono::system_clock::time_point now) const {
  if (!style_.prefix && !style_.timestamps) return {};
  std::string inside;
  if (style_.prefix) inside = fmt::format("{:>{}}", rank, fmt::formatted_size("{}", style_.ranks - 1));
  if (style_.timestamps) {
    const auto whole = std::chrono::floor<std::chrono::seconds>(now);
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now - whole).count();
    if (!inside.empty()) inside += ' ';
    inside +=
        fmt::format("{:%H:%M:%S}.{:03}", fmt::localtime(std::chrono::system_clock::to_time_t(whole)), milliseconds);
  }
  if (!style_.terminal) return fmt::format("[{}] ", inside);
  return fmt::format("\x1b[{}m[{}]\x1b[0m ", colours[static_cast<size_t>(rank) % colours.size()], inside);
}

void Screen::count_line(int rank) {
  if (last_rank_ != rank) lines_at_bottom_ = 0;
  last_rank_ = rank;
  ++lines_at_bottom_;
}

}  // namespace fedrun::launcher
