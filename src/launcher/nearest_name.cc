#include <fedrun/launcher/nearest_name.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace fedrun::launcher {

int edit_distance(std::string_view one, std::string_view other) {
  std::vector<int> row(other.size() + 1);  // distances from the part of `one` seen so far to each beginning of `other`
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < one.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i) + 1;
    for (size_t j = 0; j < other.size(); ++j) {
      const int replaced = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::optional<std::string_view> nearest_name(std::string_view name, std::span<const std::string_view> names) {
  constexpr size_t longest = 64;  // no name is as long, and the distance takes time in the square
  if (name.size() > longest) return std::nullopt;
  int smallest = static_cast<int>(name.size()) / 3 + 1;
  std::optional<std::string_view> nearest;
  for (const std::string_view candidate : names) {
    const int distance = edit_distance(name, candidate);
    if (distance >= smallest) continue;
    smallest = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace fedrun::launcher
