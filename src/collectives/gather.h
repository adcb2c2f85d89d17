// How ranks tell each other a few bytes before, or while, they set up something to share.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace fedrun {

// Collective: `all` receives the `bytes` of every rank, in rank order.
using Gather = std::function<void(const void* mine, std::size_t bytes, void* all)>;

// Every rank brings one value of a plain type and receives all of them in rank order.
template <typename T>
std::vector<T> gather_values(const Gather& gather, int ranks, const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(ranks));
  gather(&mine, sizeof(T), all.data());
  return all;
}

}  // namespace fedrun
