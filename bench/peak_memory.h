// The most memory that this process has had so far.
#pragma once

#include <sys/resource.h>

namespace fedrun::bench {

inline double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1e3;
}

}  // namespace fedrun::bench
