#include <fedrun/core/error.h>
#include <fedrun/train/session.h>

namespace fedrun {
namespace {

torch::Device choose_device(DeviceChoice choice) {
  if (choice == DeviceChoice::cuda) {
    throw UsageError("FEDRUN_DEVICE=cuda: this version of fedrun trains on the CPU only; unset it or use cpu");
  }
  return torch::kCPU;
}

}  // namespace

Session::Session() : device_(choose_device(env().device)) { torch::set_num_threads(threads()); }

Session::Session(const RunEnv& env) : Process(env), device_(choose_device(env.device)) {
  torch::set_num_threads(threads());
}

}  // namespace fedrun
