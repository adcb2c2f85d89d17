#include <fedrun/launcher/mpirun_messages.h>
#include <fedrun/launcher/stderr_filter.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace fedrun::launcher {
namespace {

// No message is longer; what is longer is output of the program.
constexpr size_t longest_held = size_t{64} * 1024;

std::string_view without_newline(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  return line;
}

// True also while `text` is still shorter than `start`.
bool may_start_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start.substr(0, text.size());
}

}  // namespace

std::string StderrFilter::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const bool complete = newline != std::string_view::npos;
    const std::string_view piece = bytes.substr(0, complete ? newline + 1 : newline);
    bytes.remove_prefix(piece.size());
    if (in_shown_line_) {
      shown_ += piece;
      in_shown_line_ = !complete;
      continue;
    }
    line_ += piece;
    if (complete) {
      take_line(std::exchange(line_, {}));
    } else if (!may_matter(line_)) {
      settle_all();
    }
  }
  if (held_.size() > longest_held) settle();
  return take_shown();
}

std::string StderrFilter::release() {
  settle_all();
  return take_shown();
}

std::string StderrFilter::finish(const MpirunEnding& ending) {
  settle_all();
  const bool at_line_start = shown_.empty() ? ended_with_newline_ : shown_.back() == '\n';
  if (!at_line_start) shown_ += '\n';
  if (reports_.empty() && explanation_.empty()) shown_ += complaints_;
  if (reports_.empty() && (explanation_.empty() || blames_victim())) {
    shown_ += victims_;
    explanation_.clear();
  }
  shown_ += repeated_reports();
  shown_ += last_line(ending);
  return take_shown();
}

std::string StderrFilter::take_shown() {
  if (!shown_.empty()) ended_with_newline_ = shown_.back() == '\n';
  return std::exchange(shown_, {});
}

bool StderrFilter::may_matter(std::string_view start) const {
  if (start.size() > longest_held) return false;
  if (state_ == State::after_ruler || state_ == State::in_block) return true;
  if (state_ == State::in_report && may_start_with(start, "  ")) return true;
  if (start.find_first_not_of('-') == std::string_view::npos) return true;
  return start[0] == '[' || may_start_with(start, rank_report_start);
}

void StderrFilter::take_line(std::string line) {
  const std::string_view text = without_newline(line);
  if (state_ == State::in_report && text.starts_with("  ")) {
    held_ += line;
    return;
  }
  if (state_ == State::after_ruler && begins_ending_block(text)) {
    state_ = State::in_block;
    held_ += line;
    return;
  }
  if (state_ == State::in_block) {
    held_ += line;
    if (is_ruler(text)) end_block();
    return;
  }
  if (state_ == State::after_ruler) showed_other_block_ = true;
  settle();
  if (is_ruler(text)) return begin(State::after_ruler, std::move(line));
  if (parse_rank_report(text)) return begin(State::in_report, std::move(line));
  if (!options_.show_mpirun_messages) {
    if (counts_repeated_blocks(text)) return;
    if (is_internal_complaint(text)) {
      complaints_ += line;
      return;
    }
  }
  shown_ += line;
}

void StderrFilter::begin(State state, std::string line) {
  state_ = state;
  held_ = std::move(line);
}

void StderrFilter::end_block() {
  const std::string_view block = std::string_view(held_).substr(held_.find('\n') + 1);
  if (explanation_.empty()) explanation_ = explain_ending_block(block).value_or("");
  if (options_.show_mpirun_messages) shown_ += held_;
  state_ = State::passing;
  held_.clear();
}

void StderrFilter::end_report() {
  const std::string_view first_line = without_newline(std::string_view(held_).substr(0, held_.find('\n') + 1));
  const RankReport parsed = *parse_rank_report(first_line);
  // A rank that lost another is a victim. It would hide the cause, unless nothing else is known of it.
  if (parsed.error.starts_with("PeerLostError: ") && !options_.show_mpirun_messages) {
    victims_ += held_;
    victim_ranks_.push_back(parsed.rank);
    return;
  }
  const std::string error = std::string(parsed.error) + held_.substr(first_line.size());
  const auto same =
      std::find_if(reports_.begin(), reports_.end(), [&](const Report& report) { return report.error == error; });
  if (same == reports_.end()) {
    reports_.push_back({error, {parsed.rank}});
    shown_ += held_;
  } else if (std::find(same->ranks.begin(), same->ranks.end(), parsed.rank) == same->ranks.end()) {
    same->ranks.push_back(parsed.rank);
  } else {
    shown_ += held_;  // the same rank once more: that is news
  }
}

// Ends whatever is held, complete or not.
void StderrFilter::settle() {
  if (state_ == State::in_report) {
    end_report();
  } else {
    shown_ += held_;
  }
  state_ = State::passing;
  held_.clear();
}

void StderrFilter::settle_all() {
  settle();
  if (line_.empty()) return;
  in_shown_line_ = true;
  shown_ += std::exchange(line_, {});
}

// The rank that ended first did so because another does not answer: then that one has not ended, and nobody else can
// tell.
bool StderrFilter::blames_victim() const {
  return std::any_of(victim_ranks_.begin(), victim_ranks_.end(),
                     [&](int rank) { return explanation_.starts_with(fmt::format("rank {} exited ", rank)); });
}

std::string StderrFilter::repeated_reports() const {
  std::string lines;
  for (const Report& report : reports_) {
    if (report.ranks.size() < 2) continue;
    std::vector<int> others(report.ranks.begin() + 1, report.ranks.end());
    std::sort(others.begin(), others.end());
    lines += fmt::format("fedrun: the same error on rank{} {} as on rank {}\n", others.size() == 1 ? "" : "s",
                         fmt::join(others, ", "), report.ranks[0]);
  }
  return lines;
}

std::string StderrFilter::last_line(const MpirunEnding& ending) const {
  if (!ending.failed() || ending.stopped_by_user || !reports_.empty()) return {};
  if (explanation_.empty() && !victims_.empty()) return {};
  if (!explanation_.empty()) return fmt::format("fedrun: {}\n", explanation_);
  if (ending.signal != 0) return fmt::format("fedrun: mpirun was ended by {}\n", signal_in_words(ending.signal));
  if (showed_other_block_) return {};
  const int signal = ending.exit_code - 128;
  const bool may_be_signal = signal > 0 && signal < NSIG;
  return fmt::format("fedrun: a rank exited with code {}{}\n", ending.exit_code,
                     may_be_signal ? fmt::format(", which stands for {}", signal_in_words(signal)) : "");
}

}  // namespace fedrun::launcher
