#include <fedrun/launcher/mpirun_messages.h>
#include <fedrun/launcher/mpirun_text.h>

#include <utility>

namespace fedrun::launcher {

std::string MpirunText::feed(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const bool complete = newline != std::string_view::npos;
    const std::string_view piece = text.substr(0, complete ? newline + 1 : newline);
    line_ += piece;
    text.remove_prefix(piece.size());
    if (complete) shown += take_line(std::exchange(line_, {}));
  }
  return shown;
}

std::string MpirunText::release() {
  std::string shown = settle();
  if (!line_.empty()) shown += std::exchange(line_, {}) + '\n';
  return shown;
}

std::string MpirunText::take_line(std::string line) {
  const std::string_view text = std::string_view(line).substr(0, line.size() - 1);
  if (state_ == State::in_block) {
    held_ += line;
    return is_ruler(text) ? end_block() : "";
  }
  if (state_ == State::after_ruler && begins_ending_block(text)) {
    state_ = State::in_block;
    held_ += line;
    return {};
  }
  if (state_ == State::after_ruler) showed_other_block_ = true;
  std::string shown = settle();
  if (is_ruler(text)) {
    state_ = State::after_ruler;
    held_ = std::move(line);
    return shown;
  }
  if (!show_all_) {
    if (counts_repeated_blocks(text)) return shown;
    if (is_internal_complaint(text)) {
      complaints_ += line;
      return shown;
    }
  }
  return shown + line;
}

std::string MpirunText::end_block() {
  const std::string_view block = std::string_view(held_).substr(held_.find('\n') + 1);
  if (explanation_.empty()) explanation_ = explain_ending_block(block).value_or("");
  std::string shown = settle();
  return show_all_ ? shown : "";
}

std::string MpirunText::settle() {
  state_ = State::passing;
  return std::exchange(held_, {});
}

}  // namespace fedrun::launcher
