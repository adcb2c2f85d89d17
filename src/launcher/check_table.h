// The outcome of the checks as people read it.
#pragma once

#include <fedrun/launcher/preflight.h>

#include <string>

namespace fedrun::launcher {

// Every row, aligned, with remedies below, and a last line that sums up: for `fedrun check`.
std::string check_table(const PreflightResult& result);

// Only what keeps a run from starting; empty when nothing does.
std::string check_failures(const PreflightResult& result);

}  // namespace fedrun::launcher
