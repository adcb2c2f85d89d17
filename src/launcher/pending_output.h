// Text on its way to a terminal, file or pipe whose reader may be slow, have stopped or be gone.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fedrun::launcher {

class PendingOutput {
 public:
  explicit PendingOutput(int descriptor) : descriptor_(descriptor) {}

  int descriptor() const { return descriptor_; }
  size_t size() const { return text_.size() - written_; }
  bool empty() const { return size() == 0; }
  // Why nothing more can be written, as an errno: EPIPE after `fedrun … | head`, ENOSPC on a full disk; 0: it can.
  int problem() const { return problem_; }

  void append(std::string_view text);

  // For when poll calls the descriptor writable. Takes no more than a pipe then takes without blocking, so that a
  // reader who has stopped cannot keep us from our signals.
  void write_some();

 private:
  int descriptor_;
  std::string text_;
  size_t written_ = 0;  // the beginning that is done; cut off when it is the larger part, so that bytes move only once
  int problem_ = 0;
};

}  // namespace fedrun::launcher
