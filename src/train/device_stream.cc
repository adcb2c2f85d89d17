#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fedrun/core/error.h>
#include <fedrun/train/device_stream.h>

#include <algorithm>

namespace fedrun {
namespace {

// LibTorch has it from version 2.12 on.
template <typename Stream>
void* native_handle_of(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) {
    return stream.native_handle();
  } else {
    throw UsageError("tensors on GPUs need LibTorch 2.12 or newer: build fedrun with one, or train on the CPU");
  }
}

}  // namespace

c10::Stream current_stream(torch::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

void* handle_of(const c10::Stream& stream) { return native_handle_of(stream); }

void wait_for_result(Work& work, torch::Device device) {
  if (device.is_cpu()) return work.wait();
  work.wait_in_stream(handle_of(current_stream(device)));
}

void keep_for_current_stream(const torch::Tensor& tensor) {
  if (!tensor.device().is_cpu()) tensor.record_stream(current_stream(tensor.device()));
}

void StreamSet::add_current(torch::Device device) {
  if (device.is_cpu()) return;
  const c10::Stream stream = current_stream(device);
  if (std::ranges::find(streams_, stream) == streams_.end()) streams_.push_back(stream);
}

void StreamSet::gather_into_current(torch::Device device) {
  if (device.is_cpu()) return;
  const c10::Stream here = current_stream(device);
  for (const c10::Stream& stream : streams_) {
    if (stream == here) continue;
    c10::Event done(device.type());
    done.record(stream);
    done.block(here);
  }
  streams_.clear();
}

}  // namespace fedrun
