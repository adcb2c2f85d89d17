// Asks another program a short question, and does not wait for the answer for ever.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace fedrun::launcher {

// What the command, found on PATH, writes to standard output. Nothing when it cannot be started, fails, writes more
// than an answer would have, or takes longer than `limit`; then it is killed.
std::optional<std::string> output_of(const std::vector<std::string>& command, std::chrono::milliseconds limit);

}  // namespace fedrun::launcher
