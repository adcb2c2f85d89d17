// Deals elements out to ranks as evenly as they go.
#pragma once

#include <cstddef>
#include <vector>

namespace fedrun {

// The first `count % ranks` ranks get one more than the others.
inline std::vector<std::size_t> equal_parts(std::size_t count, std::size_t ranks) {
  std::vector<std::size_t> parts(ranks, count / ranks);
  for (std::size_t i = 0; i < count % ranks; ++i) ++parts[i];
  return parts;
}

}  // namespace fedrun
