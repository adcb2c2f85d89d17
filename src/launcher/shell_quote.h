// Text as one word for a POSIX shell.
#pragma once

#include <string>
#include <string_view>

namespace fedrun::launcher {

// Plain words stay as they are; everything else stands in single quotes, where a shell interprets nothing.
std::string shell_quote(std::string_view text);

}  // namespace fedrun::launcher
