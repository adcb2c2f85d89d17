// The CUDA runtime's functions about devices and errors.
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "stand_ins/cuda_errors.h"
#include "stand_ins/stand_in_control.h"
#include "stand_ins/stand_in_device.h"
#include "stand_ins/stand_in_machine.h"

namespace stand_in {

namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int gpu_of_thread = 0;

}  // namespace

cudaError_t answer(cudaError_t result) {
  if (result != cudaSuccess) last_error = result;
  return result;
}

int current_gpu() { return gpu_of_thread; }

}  // namespace stand_in

using namespace stand_in;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (control().shall_fail("cudaGetDeviceCount")) return answer(cudaErrorNoDevice);
  const char* gpus = std::getenv("STAND_IN_GPUS");
  *count = gpus == nullptr ? 8 : std::atoi(gpus);
  return *count == 0 ? answer(cudaErrorNoDevice) : cudaSuccess;
}

cudaError_t cudaSetDevice(int gpu) {
  if (control().shall_fail("cudaSetDevice")) return answer(cudaErrorInvalidDevice);
  gpu_of_thread = gpu;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int gpu) {
  if (control().shall_fail("cudaDeviceGetPCIBusId")) return answer(cudaErrorInvalidDevice);
  std::snprintf(id, static_cast<std::size_t>(bytes), "0000:%02x:00.0", static_cast<unsigned>(gpu));
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  Machine& all = machine();
  std::unique_lock lock(all.mutex);
  for (Stream* stream : std::set<Stream*>(all.streams)) {
    all.changed.wait(lock,
                     [&] { return !all.streams.contains(stream) || (stream->tasks.empty() && !stream->is_busy); });
    if (all.streams.contains(stream)) all.host_clock.merge(stream->clock);
  }
  return cudaSuccess;
}

// LibTorch's profiler looks for these, even in its library for the CPU.
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(stand_in::last_error, cudaSuccess); }
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorNoDevice ? "cudaErrorNoDevice" : "cudaError";
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorNoDevice ? "no device, says the stand-in" : "an error of the stand-in";
}

}  // extern "C"
