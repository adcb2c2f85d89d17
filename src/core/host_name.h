// The name that this machine gives itself.
#pragma once

#include <string>

namespace fedrun {

std::string host_name();

}  // namespace fedrun
