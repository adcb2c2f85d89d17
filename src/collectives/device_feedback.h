// Rounds with feedback on a GPU; what a build without CUDA has is nccl_absent.cc.
#pragma once

#include <fedrun/collectives/feedback_kernels.h>

namespace fedrun {

// There is at least one element. Throws BackendError if CUDA refuses, or is not in this build.
void round_with_feedback_on_device(const Buffer& elements, const Buffer& residuals, const Feedback& feedback);

}  // namespace fedrun
