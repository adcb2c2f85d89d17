#include <fedrun/collectives/hash.h>
#include <fedrun/core/error.h>
#include <fedrun/train/agreement.h>
#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace fedrun {
namespace {

std::vector<std::string> split_lines(std::span<const std::uint8_t> text) {
  std::vector<std::string> lines(1);
  for (const std::uint8_t c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += static_cast<char>(c);
    }
  }
  lines.pop_back();  // every line ends with a newline, so nothing follows the last
  return lines;
}

std::string line_or_nothing(const std::vector<std::string>& lines, std::size_t index) {
  return index < lines.size() ? lines[index] : "nothing";
}

}  // namespace

void check_agreement(Communicator& group, std::string_view what, const std::vector<std::string>& lines,
                     std::string_view remedy) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';

  const auto mine = static_cast<std::int64_t>(hash_of(std::as_bytes(std::span(text))));
  const auto fingerprints = group.allgather(std::span(&mine, 1));
  if (std::ranges::all_of(fingerprints, [&](const auto& other) { return other == fingerprints.front(); })) return;

  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  const auto texts = group.allgather(bytes);
  const std::vector<std::string> reference = split_lines(texts.front());
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    const std::vector<std::string> other = split_lines(texts[rank]);
    for (std::size_t i = 0; i < std::max(reference.size(), other.size()); ++i) {
      const std::string left = line_or_nothing(reference, i);
      const std::string right = line_or_nothing(other, i);
      if (left == right) continue;
      const std::string where = reference.size() > 1 || other.size() > 1 ? fmt::format(", first at number {}", i) : "";
      throw MismatchError(fmt::format("{} differ between ranks{}: rank 0 has {}, rank {} has {}. {}", what, where, left,
                                      rank, right, remedy));
    }
  }
}

}  // namespace fedrun
