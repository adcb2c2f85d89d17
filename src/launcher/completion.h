// Shell completions, made from the table of flags.
#pragma once

#include <string>
#include <string_view>

namespace fedrun::launcher {

// A script for bash or zsh that completes flags, their values, and files for the program.
std::string completion_script(std::string_view shell);

}  // namespace fedrun::launcher
