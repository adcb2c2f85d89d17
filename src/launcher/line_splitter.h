// Cuts what a rank writes into lines, and into the states of a progress bar, which end with a carriage return.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

class LineSplitter {
 public:
  // What is complete now; each piece ends with "\n", "\r\n" or "\r". A longer line than the limit comes in parts.
  std::vector<std::string> feed(std::string_view bytes);

  // The beginning of a line that has not ended, such as a prompt, up to its last whole character.
  std::string take_unfinished();
  // The same to the last byte, for when the rank has ended.
  std::string take_rest();

  std::size_t held_bytes() const { return held_.size(); }

 private:
  std::string held_;
  std::size_t searched_ = 0;  // so much of it has no end, so that a long line is not searched again with each part
};

// Nobody reads a longer one; below it, a line stays whole whatever other ranks write.
constexpr std::size_t longest_line_bytes = std::size_t{64} << 20;

}  // namespace fedrun::launcher
