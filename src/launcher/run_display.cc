#include <fedrun/core/error.h>
#include <fedrun/launcher/run_display.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace fedrun::launcher {
namespace {

using std::chrono::milliseconds;

constexpr std::array streams = {RankStream::output, RankStream::errors};

// How long a line may be unfinished before its beginning is shown. A long one is no prompt, but still on its way.
milliseconds patience_with(const LineSplitter& splitter) {
  constexpr size_t longest_prompt = 4096;
  return splitter.held_bytes() <= longest_prompt ? milliseconds(100) : milliseconds(2000);
}

bool same_target() {
  struct stat output = {};
  struct stat errors = {};
  return fstat(STDOUT_FILENO, &output) == 0 && fstat(STDERR_FILENO, &errors) == 0 && output.st_dev == errors.st_dev &&
         output.st_ino == errors.st_ino;
}

bool wants_colour(int descriptor) { return isatty(descriptor) != 0 && std::getenv("NO_COLOR") == nullptr; }

}  // namespace

Screen::Style RunDisplay::screen_style(const Options& options, int ranks) {
  return {.ranks = ranks, .prefix = options.prefix && ranks > 1, .timestamps = options.timestamps};
}

RunDisplay::RunDisplay(const Options& options, RunRecord& record)
    : record_(record), one_target_(same_target()), lines_(record.ranks.size()), reports_(options.show_all) {
  const int ranks = static_cast<int>(record.ranks.size());
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    Screen::Style style = screen_style(options, ranks);
    style.terminal = wants_colour(descriptor);
    screens_.emplace_back(style);
  }
  if (options.output_directory) files_.emplace(*options.output_directory, ranks);
}

void RunDisplay::show_rank(int rank, RankStream stream, std::string_view bytes) {
  if (files_) {
    try {
      files_->write(rank, stream, bytes);
    } catch (const BackendError& error) {
      show_lines(fmt::format("fedrun: {}\n", error.what()));
    }
  }
  RankLines& own = lines(rank, stream);
  own.last_fed = RunClock::now();
  for (const std::string& piece : own.splitter.feed(bytes)) show_piece(rank, stream, piece);
}

void RunDisplay::show_piece(int rank, RankStream stream, const std::string& piece) {
  if (piece.empty()) return;
  if (piece.ends_with('\n')) record_.keep_line(rank, piece);
  if (stream == RankStream::errors) {
    if (reports_.takes(rank, piece)) return;
    show_report(rank);
    if (reports_.takes(rank, piece)) return;  // a second report right after the first
  }
  const size_t index = target(stream);
  pending_[index].append(screens_[index].show(rank, piece, std::chrono::system_clock::now()));
}

void RunDisplay::show_report(int rank) { show_lines(reports_.settle(rank)); }

void RunDisplay::end_rank(int rank) {
  for (const RankStream stream : streams) {
    const std::string rest = lines(rank, stream).splitter.take_rest();
    if (!rest.empty()) record_.keep_line(rank, rest);
    show_piece(rank, stream, rest);
  }
}

std::string RunDisplay::take_report(int rank) { return reports_.settle(rank); }

void RunDisplay::show_lines(std::string_view text) {
  const size_t index = target(RankStream::errors);
  pending_[index].append(screens_[index].show_lines(text));
}

void RunDisplay::release(RunClock::time_point now) {
  for (int rank = 0; rank < static_cast<int>(lines_.size()); ++rank) {
    for (const RankStream stream : streams) {
      RankLines& own = lines(rank, stream);
      if (now < due(rank, stream).value_or(RunClock::time_point::max())) continue;
      show_piece(rank, stream, own.splitter.take_unfinished());
      if (stream == RankStream::errors) show_report(rank);
    }
  }
}

std::optional<RunClock::time_point> RunDisplay::due(int rank, RankStream stream) const {
  const RankLines& own = lines_[static_cast<size_t>(rank)][stream == RankStream::output ? 0 : 1];
  // A rank that reports an error ends with it, and then the end of the run is the better place for it.
  const bool ended = record_.ranks[static_cast<size_t>(rank)].ending.has_value();
  const bool holds_report = stream == RankStream::errors && reports_.holds(rank) && !ended;
  if (own.splitter.held_bytes() == 0 && !holds_report) return std::nullopt;
  return own.last_fed + patience_with(own.splitter);
}

std::optional<RunClock::time_point> RunDisplay::next_release() const {
  std::optional<RunClock::time_point> next;
  for (int rank = 0; rank < static_cast<int>(lines_.size()); ++rank) {
    for (const RankStream stream : streams) {
      if (const auto one = due(rank, stream)) next = std::min(next.value_or(*one), *one);
    }
  }
  return next;
}

bool RunDisplay::shows_last_lines_of(int rank) const {
  const size_t lines = record_.ranks[static_cast<size_t>(rank)].last_lines.size();
  return std::any_of(screens_.begin(), screens_.end(),
                     [&](const Screen& screen) { return static_cast<size_t>(screen.lines_at_bottom(rank)) >= lines; });
}

}  // namespace fedrun::launcher
