// Takes lists such as "a:2,b" apart.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

// Always one part more than there are separators, so that a missing part is seen as an empty one.
inline std::vector<std::string_view> split_list(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace fedrun::launcher
