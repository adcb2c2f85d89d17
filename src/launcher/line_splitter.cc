#include <fedrun/launcher/line_splitter.h>

#include <algorithm>
#include <utility>

namespace fedrun::launcher {
namespace {

// How many bytes at the end of `text` begin a UTF-8 character that is not complete.
std::size_t cut_character_bytes(std::string_view text) {
  const std::size_t most = std::min<std::size_t>(3, text.size());
  for (std::size_t back = 1; back <= most; ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;  // not the first byte of its character
    const std::size_t length = byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : byte >= 0xC0U ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

std::vector<std::string> LineSplitter::feed(std::string_view bytes) {
  held_ += bytes;
  std::vector<std::string> pieces;
  std::size_t begin = 0;
  for (std::size_t end; (end = held_.find_first_of("\r\n", searched_)) != std::string::npos;) {
    if (held_[end] == '\r') {
      if (end + 1 == held_.size()) break;  // it may be half of "\r\n"
      if (held_[end + 1] == '\n') ++end;
    }
    pieces.push_back(held_.substr(begin, end + 1 - begin));
    begin = searched_ = end + 1;
  }
  held_.erase(0, begin);
  searched_ = held_.ends_with('\r') ? held_.size() - 1 : held_.size();
  if (held_.size() > longest_line_bytes) pieces.push_back(take_rest());
  return pieces;
}

std::string LineSplitter::take_unfinished() {
  const std::size_t kept = cut_character_bytes(held_);
  std::string rest = held_.substr(held_.size() - kept);
  held_.resize(held_.size() - kept);
  searched_ = 0;
  std::swap(held_, rest);
  return rest;
}

std::string LineSplitter::take_rest() {
  searched_ = 0;
  return std::exchange(held_, {});
}

}  // namespace fedrun::launcher
