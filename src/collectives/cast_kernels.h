// Converts between f32, f16 and bf16 at the speed of memory.
#pragma once

#include <fedrun/collectives/types.h>

namespace fedrun {

// Converts every element of `from` to the type of `to`, rounding to nearest even as half.h does; what is too large
// becomes infinite, NaN stays NaN. The counts agree and the buffers do not overlap. Pointers need only the alignment of
// their elements. Equal types are copied; otherwise throws UsageError for types other than f32, f16 and bf16.
void cast(ConstBuffer from, Buffer to);

}  // namespace fedrun
