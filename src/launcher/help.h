// fedrun --help, made from the table of flags and from the table of FEDRUN_* variables.
#pragma once

#include <string>

namespace fedrun::launcher {

std::string help_text();

}  // namespace fedrun::launcher
