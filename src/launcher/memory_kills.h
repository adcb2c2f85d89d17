// Recognises that the kernel killed a process for lack of memory, which to its parent is a SIGKILL like any other.
#pragma once

#include <optional>
#include <string_view>

namespace fedrun::launcher {

// How many processes the kernel has killed so in our control group, or on the host where there is no such count.
long count_memory_kills();

// The number after `oom_kill` in /proc/vmstat, memory.events or memory.oom_control.
std::optional<long> parse_memory_kills(std::string_view text);

}  // namespace fedrun::launcher
