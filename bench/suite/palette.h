// The same thing has the same colour in every plot of the page.
#pragma once

#include <string_view>

namespace fedrun::bench::suite {

int color_of(std::string_view name);

}  // namespace fedrun::bench::suite
