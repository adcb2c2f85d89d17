// Launches the kernels of device_kernels.cu: their element code, compiled for the host, runs as a task on the stream.
#include <fedrun/collectives/device_elements.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "stand_ins/cuda_errors.h"
#include "stand_ins/stand_in_control.h"
#include "stand_ins/stand_in_device.h"

namespace stand_in {

namespace {

// Names by the address of the host's function.
std::map<const void*, std::string>& kernels() {
  static auto* all = new std::map<const void*, std::string>;
  return *all;
}

template <typename Arguments>
Arguments arguments_of(void** args) {
  Arguments arguments;
  std::memcpy(&arguments, args[0], sizeof arguments);
  return arguments;
}

// As each thread of the grid does it.
template <typename Share>
void run_grid(dim3 grid, dim3 block, Share share) {
  const std::uint64_t stride = std::uint64_t{grid.x} * block.x;
  for (unsigned row = 0; row < grid.y; ++row) {
    for (std::uint64_t first = 0; first < stride; ++first) share(row, first, stride);
  }
}

void launch_copy(dim3 grid, dim3 block, void** args, void* stream) {
  auto arguments = arguments_of<fedrun::CopyArguments>(args);
  std::vector<Access> accesses;
  if (grid.y != arguments.piece_count) control().report("fedrun_copy_pieces has not one row of blocks for each piece");
  for (unsigned i = 0; i < arguments.piece_count; ++i) {
    fedrun::CopyPiece& piece = arguments.pieces[i];
    accesses.push_back({piece.from, piece.count * fedrun::size_of(arguments.from_type), false});
    accesses.push_back({piece.to, piece.count * fedrun::size_of(arguments.to_type), true});
  }
  put_on_stream(stream, "fedrun_copy_pieces", accesses, [arguments, grid, block]() mutable {
    for (unsigned i = 0; i < arguments.piece_count; ++i) {
      arguments.pieces[i].from = seen_by_device(arguments.pieces[i].from);
      arguments.pieces[i].to = seen_by_device(arguments.pieces[i].to);
    }
    run_grid(grid, block, [&](unsigned row, std::uint64_t first, std::uint64_t stride) {
      fedrun::copy_share(arguments, arguments.pieces[row], first, stride);
    });
  });
}

void launch_fill(dim3 grid, dim3 block, void** args, void* stream) {
  auto arguments = arguments_of<fedrun::FillArguments>(args);
  const Access access{arguments.data, arguments.count * fedrun::size_of(arguments.type), true};
  put_on_stream(stream, "fedrun_fill", {access}, [arguments, grid, block]() mutable {
    arguments.data = seen_by_device(arguments.data);
    run_grid(grid, block, [&](unsigned, std::uint64_t first, std::uint64_t stride) {
      fedrun::fill_share(arguments, first, stride);
    });
  });
}

void launch_feedback(dim3 grid, dim3 block, void** args, void* stream) {
  auto arguments = arguments_of<fedrun::FeedbackArguments>(args);
  const std::size_t bytes = arguments.count * sizeof(float);
  const std::vector<Access> accesses = {{arguments.elements, bytes, true}, {arguments.residuals, bytes, true}};
  put_on_stream(stream, "fedrun_feedback", accesses, [arguments, grid, block]() mutable {
    arguments.elements = static_cast<float*>(seen_by_device(arguments.elements));
    arguments.residuals = static_cast<float*>(seen_by_device(arguments.residuals));
    run_grid(grid, block, [&](unsigned, std::uint64_t first, std::uint64_t stride) {
      fedrun::feedback_share(arguments, first, stride);
    });
  });
}

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** args, cudaStream_t stream) {
  if (control().shall_fail("cudaLaunchKernel")) return answer(cudaErrorLaunchFailure);
  const std::string& name = kernels()[function];
  if (name == "fedrun_copy_pieces") {
    launch_copy(grid, block, args, stream);
  } else if (name == "fedrun_fill") {
    launch_fill(grid, block, args, stream);
  } else if (name == "fedrun_feedback") {
    launch_feedback(grid, block, args, stream);
  } else {
    control().report("nobody knows a kernel called " + name);
  }
  return cudaSuccess;
}

struct CallConfiguration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};
thread_local CallConfiguration configuration;

}  // namespace

}  // namespace stand_in

using namespace stand_in;

// What code that nvcc compiles calls behind the scenes.
extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  kernels()[function] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, CUstream_st* stream) {
  configuration = {grid, block, shared_bytes, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared_bytes = configuration.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t, cudaStream_t stream) {
  return launch(reinterpret_cast<const void*>(kernel), grid, block, args, stream);
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  if (control().shall_fail("cudaFuncGetAttributes")) return answer(cudaErrorNoKernelImageForDevice);
  if (!kernels().contains(function)) control().report("cudaFuncGetAttributes of what is no kernel");
  *attributes = {};
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args, size_t, cudaStream_t stream) {
  return launch(function, grid, block, args, stream);
}

}  // extern "C"
