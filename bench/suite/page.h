// The page that people read: one file that opens from disk, with everything in it.
#pragma once

#include <string>

#include "results.h"

namespace fedrun::bench::suite {

std::string to_html(const Results& results);

}  // namespace fedrun::bench::suite
