// Casts and scales elements in the memory of a GPU: packs the tensors of a bucket, or unpacks it, in one launch.
#pragma once

#include <fedrun/collectives/device_elements.h>
#include <fedrun/collectives/feedback_kernels.h>

#include <span>

namespace fedrun {

// All pieces have these types; each element is multiplied by `factor` and divided by `divisor` in f64.
struct DeviceCopy {
  DataType from_type = DataType::f32;
  DataType to_type = DataType::f32;
  double factor = 1;
  double divisor = 1;
};

// Loads the kernels now, for the thread's current GPU. CUDA loads a kernel when it is first launched, which waits for
// all that the GPU does: also for NCCL's kernels, which may wait for this rank. Throws BackendError where this build
// has none for the GPU.
void load_kernels_on_device();

// Puts it on the stream, a cudaStream_t, in one launch for each 160 pieces. Throws UsageError for types that cannot be
// cast, BackendError if CUDA refuses.
void copy_on_device(std::span<const CopyPiece> pieces, const DeviceCopy& copy, void* stream);

// Every element gets these bits.
void fill_on_device(Buffer buffer, std::uint64_t bits, void* stream);

// Of elements on a GPU that round_with_feedback() has checked: at least one. On their stream.
void round_with_feedback_on_device(const Buffer& elements, const Buffer& residuals, const Feedback& feedback);

}  // namespace fedrun
