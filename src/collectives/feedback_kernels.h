// Rounds elements to 16 bits and keeps what that leaves out, so that it can be sent the next time.
#pragma once

#include <fedrun/collectives/types.h>

namespace fedrun {

struct Feedback {
  DataType wire = DataType::f16;  // or bf16
  float scale = 1;                // elements are multiplied by it first
};

// Each element becomes element · scale + residual rounded to the wire type, still stored as f32, and its residual what
// the rounding left out. Where that is not finite the residual becomes 0: an infinite gradient is seen once, and does
// not spoil all later ones.
//
// Both are f32, equally many, and lie on the same device; on a GPU it is put on the stream of the elements. Throws
// UsageError for what it cannot do.
void round_with_feedback(const Buffer& elements, const Buffer& residuals, const Feedback& feedback);

}  // namespace fedrun
