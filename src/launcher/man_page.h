// The man page, made from the table of flags and from the table of FEDRUN_* variables.
#pragma once

#include <string>

namespace fedrun::launcher {

// fedrun(1) in roff, with the man macros.
std::string man_page();

}  // namespace fedrun::launcher
