#include "device_choice.h"

#include <fedrun/collectives/nccl_runtime.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>

#include <string>

namespace fedrun::bench {
namespace {

std::string why_no_gpu(const Process& process) {
  if (process.env().device == DeviceChoice::cpu) return "it was started with --device cpu, or with FEDRUN_DEVICE=cpu";
  const GpuFinding found = find_gpu(process.gpu(), process.topology());
  return found.gpu ? "not every rank has a GPU of its own" : found.why_not;
}

}  // namespace

Device choose_device(DeviceChoice choice, const Process& process) {
  const bool has_gpu = process.gpu_in_use().has_value();
  if (choice == DeviceChoice::cuda && !has_gpu) {
    throw UsageError(fmt::format("--device cuda: this run uses no GPU: {}; or use --device cpu", why_no_gpu(process)));
  }
  return has_gpu && choice != DeviceChoice::cpu ? Device::cuda : Device::cpu;
}

std::string_view name_of(Device device) { return device == Device::cuda ? "cuda" : "cpu"; }

}  // namespace fedrun::bench
