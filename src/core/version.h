// The version of fedrun, as the launcher prints it and as ranks compare it.
#pragma once

namespace fedrun {

inline constexpr const char* version = "0.1.0";

}  // namespace fedrun
