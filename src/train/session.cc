#include <fedrun/core/error.h>
#include <fedrun/train/session.h>
#include <malloc.h>

#include <cstdlib>

namespace fedrun {
namespace {

torch::Device choose_device(DeviceChoice choice) {
  if (choice == DeviceChoice::cuda) {
    throw UsageError("FEDRUN_DEVICE=cuda: this version of fedrun trains on the CPU only; unset it or use cpu");
  }
  return torch::kCPU;
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

Session::Session() : device_(choose_device(env().device)) { set_torch_up(threads()); }

Session::Session(const RunEnv& env) : Process(env), device_(choose_device(env.device)) { set_torch_up(threads()); }

}  // namespace fedrun
