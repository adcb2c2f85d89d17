// Flags of horovodrun and mpirun that fedrun knows and does not take, with the reason and what to do instead.
#pragma once

#include <span>
#include <string_view>

namespace fedrun::launcher {

struct RefusedFlag {
  const char* names;  // separated by spaces
  const char* reason;
};

std::span<const RefusedFlag> refused_flags();

// nullptr: fedrun has nothing to say about it.
const RefusedFlag* find_refused_flag(std::string_view name);

}  // namespace fedrun::launcher
