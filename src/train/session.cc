#include <fedrun/train/session.h>
#include <malloc.h>

#include <cstdlib>
#include <optional>

namespace fedrun {
namespace {

torch::Device device_of(const Process& process) {
  const std::optional<int> gpu = process.gpu_in_use();
  if (!gpu) return torch::kCPU;
  return {torch::kCUDA, static_cast<torch::DeviceIndex>(*gpu)};
}

// Every step allocates the same large tensors. By default glibc gives those above 32 MiB back to the system each time,
// and the page faults of taking them again cost more than the gradients' way through all ranks. Who sets malloc's own
// variables knows better.
void keep_freed_memory() {
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") != nullptr || std::getenv("MALLOC_TRIM_THRESHOLD_") != nullptr) return;
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
}

void set_torch_up(int threads) {
  torch::set_num_threads(threads);
  keep_freed_memory();
}

}  // namespace

Session::Session() : device_(device_of(*this)) { set_torch_up(threads()); }

Session::Session(const RunEnv& env) : Process(env), device_(device_of(*this)) { set_torch_up(threads()); }

}  // namespace fedrun
