// Leaves out of mpirun's own messages what only repeats that a rank has ended, and keeps what it says about it.
#pragma once

#include <string>
#include <string_view>

namespace fedrun::launcher {

// A pure state machine: text in, lines to show out. What may belong to a message is held until it is complete.
class MpirunText {
 public:
  // `show_all`: nothing of what mpirun says is left out.
  explicit MpirunText(bool show_all) : show_all_(show_all) {}

  // Each returns what is to be shown now.
  std::string feed(std::string_view text);
  std::string release();  // what is held, complete or not; for when nothing has come for a while

  bool holds_text() const { return !line_.empty() || state_ != State::passing; }

  // The first that mpirun said about a rank's end, such as "rank 1 on a exited with code 3"; empty: nothing.
  const std::string& explanation() const { return explanation_; }
  // Its complaints about itself, worth showing only when nothing else explains a failure.
  const std::string& complaints() const { return complaints_; }
  // It has said something else, such as that a host cannot be reached.
  bool showed_other_block() const { return showed_other_block_; }

 private:
  // after_ruler: the next line decides whether a block is held.
  enum class State { passing, after_ruler, in_block };

  std::string take_line(std::string line);
  std::string end_block();
  std::string settle();

  bool show_all_;
  State state_ = State::passing;
  std::string held_;  // the block so far
  std::string line_;  // the beginning of a line
  std::string explanation_;
  std::string complaints_;
  bool showed_other_block_ = false;
};

}  // namespace fedrun::launcher
