// Every flag of fedrun in one table, from which the parser, --help, the man page and the shell completions are made.
#pragma once

#include <fedrun/launcher/flag.h>

#include <span>

namespace fedrun::launcher {

std::span<const Flag> flag_table();

}  // namespace fedrun::launcher
