// Strict readers for numbers and words from users: the whole text must fit, and the error says what would.
#pragma once

#include <charconv>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace fedrun {

[[noreturn]] void refuse_integer(std::string_view text, long long smallest, long long largest);
[[noreturn]] void refuse_word(std::string_view text, const std::string& known_words);

template <typename Integer>
Integer parse_integer(std::string_view text, Integer smallest, Integer largest) {
  Integer value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = problem == std::errc{} && end == text.data() + text.size();
  if (!is_whole || value < smallest || value > largest) refuse_integer(text, smallest, largest);
  return value;
}

template <typename Value>
Value parse_word(std::string_view text, std::initializer_list<std::pair<std::string_view, Value>> words) {
  std::string known;
  for (const auto& [word, value] : words) {
    if (word == text) return value;
    if (!known.empty()) known += ", ";
    known += word;
  }
  refuse_word(text, known);
}

}  // namespace fedrun
