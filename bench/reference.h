// What goes into a workload and what must come out of it, so that every result is checked.
#pragma once

#include <cstddef>
#include <vector>

#include "contender.h"

namespace fedrun::bench {

// Every element is a small integer, so that also the 16-bit floats add them up exactly. Made once per workload: to fill
// a buffer and to check it takes no longer than to copy and to compare it.
class Reference {
 public:
  explicit Reference(const Workload& workload);

  // Fills the input, and ruins what is left of an earlier result.
  void load(const WorkBuffers& buffers) const;
  // Makes the input 0, which stays 0 however often it is reduced in place.
  static void clear(const WorkBuffers& buffers);
  // How many elements of the output, which the host can read, are not as they must be.
  std::size_t count_wrong(Buffer output) const;

 private:
  std::vector<std::byte> input_;
  std::vector<std::byte> expected_;
  double tolerance_;  // relative to what is expected
};

}  // namespace fedrun::bench
