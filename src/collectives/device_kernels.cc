#include <fedrun/collectives/cuda_call.h>
#include <fedrun/collectives/device_kernels.h>
#include <fedrun/collectives/device_launch.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>

#include <algorithm>

namespace fedrun {

void load_kernels_on_device() {
  const cudaError_t result = load_kernels();
  if (result == cudaErrorNoKernelImageForDevice) {
    static_cast<void>(cudaGetLastError());
    throw BackendError(
        "CUDA: this build of fedrun has no kernels for the GPU of this rank: build it again with "
        "-DCMAKE_CUDA_ARCHITECTURES=native on this machine");
  }
  check_cuda(result, "loading kernels");
}

void copy_on_device(std::span<const CopyPiece> pieces, const DeviceCopy& copy, void* stream) {
  if (!can_copy(copy.from_type, copy.to_type)) {
    throw UsageError(fmt::format("{} cannot be cast to {} on a GPU: f32, f16 and bf16 can be cast to each other",
                                 to_string(copy.from_type), to_string(copy.to_type)));
  }
  CopyArguments arguments{};
  arguments.from_type = copy.from_type;
  arguments.to_type = copy.to_type;
  arguments.factor = copy.factor;
  arguments.divisor = copy.divisor;
  while (!pieces.empty()) {
    arguments.piece_count = 0;
    std::uint64_t longest = 0;
    const std::size_t count = std::min(pieces.size(), most_pieces);
    for (const CopyPiece& piece : pieces.first(count)) {
      if (piece.count == 0) continue;
      arguments.pieces[arguments.piece_count++] = piece;
      longest = std::max(longest, piece.count);
    }
    if (longest != 0) check_cuda(launch_copy(arguments, longest, static_cast<cudaStream_t>(stream)), "launching copy");
    pieces = pieces.subspan(count);
  }
}

void fill_on_device(Buffer buffer, std::uint64_t bits, void* stream) {
  if (buffer.count == 0) return;
  const FillArguments arguments{buffer.data, buffer.count, bits, buffer.type};
  check_cuda(launch_fill(arguments, static_cast<cudaStream_t>(stream)), "launching fill");
}

void round_with_feedback_on_device(const Buffer& elements, const Buffer& residuals, const Feedback& feedback) {
  const FeedbackArguments arguments{static_cast<float*>(elements.data), static_cast<float*>(residuals.data),
                                    elements.count, feedback.scale, feedback.wire};
  check_cuda(launch_feedback(arguments, static_cast<cudaStream_t>(elements.stream)), "launching feedback");
}

}  // namespace fedrun
