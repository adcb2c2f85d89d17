// Text on its way through a shell: each word arrives as it was, whatever it holds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

// One word of a POSIX shell; quoted only where it must be, so that people can read it.
std::string shell_quote(std::string_view word);

// A line that does the same when pasted into a shell.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace fedrun::launcher
