// Gives LibTorch a device called CUDA that lies in the memory and on the streams of the stand-in for CUDA, so that code
// for tensors on GPUs can be run without one. Its operations are LibTorch's own for the CPU, on copies.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "stand_ins/stand_in_control.h"

namespace stand_in {
namespace {

using at::CUDAHooksRegistry;
using at::RegistererCUDAHooksRegistry;
using at::Tensor;
using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

void check(cudaError_t result, const char* call) {
  TORCH_CHECK(result == cudaSuccess, "the stand-in for CUDA failed in ", call);
}

// --- streams
// ----------------------------------------------------------------------------------------------------------

thread_local DeviceIndex the_device = 0;
thread_local c10::StreamId current_stream_id = 0;  // the default one; others are the addresses of their handles

cudaStream_t handle_of(const Stream& stream) { return reinterpret_cast<cudaStream_t>(stream.id()); }
cudaStream_t current_handle() { return reinterpret_cast<cudaStream_t>(current_stream_id); }

class GuardImpl final : public c10::impl::DeviceGuardImplInterface {
 public:
  DeviceType type() const override { return DeviceType::CUDA; }
  Device exchangeDevice(Device device) const override {
    const Device previous = getDevice();
    the_device = device.index();
    return previous;
  }
  Device getDevice() const override { return {DeviceType::CUDA, the_device}; }
  void setDevice(Device device) const override { the_device = device.index(); }
  void uncheckedSetDevice(Device device) const noexcept override { the_device = device.index(); }
  DeviceIndex deviceCount() const noexcept override { return 8; }

  Stream getStream(Device device) const override { return Stream(Stream::UNSAFE, device, current_stream_id); }
  Stream getDefaultStream(Device device) const override { return Stream(Stream::DEFAULT, device); }
  Stream getNewStream(Device device, int /*priority*/) const override {
    cudaStream_t made = nullptr;
    check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    control().add("stream", -1);  // Torch keeps its streams for ever
    return Stream(Stream::UNSAFE, device, reinterpret_cast<c10::StreamId>(made));
  }
  Stream getStreamFromGlobalPool(Device device, bool /*is_high_priority*/) const override {
    return getNewStream(device, 0);
  }
  Stream exchangeStream(Stream stream) const override {
    const Stream previous = getStream(stream.device());
    current_stream_id = stream.id();
    return previous;
  }
  void* getStreamNativeHandle(const Stream stream) const override { return handle_of(stream); }
  void synchronizeStream(const Stream& stream) const override {
    check(cudaStreamSynchronize(handle_of(stream)), "cudaStreamSynchronize");
  }

  void record(void** event, const Stream& stream, const DeviceIndex /*device*/,
              const c10::EventFlag flag) const override {
    if (*event == nullptr) {
      cudaEvent_t made = nullptr;
      const bool takes_time = flag == c10::EventFlag::BACKEND_DEFAULT;
      check(cudaEventCreateWithFlags(&made, takes_time ? cudaEventDefault : cudaEventDisableTiming),
            "cudaEventCreateWithFlags");
      *event = made;
    }
    check(cudaEventRecord(static_cast<cudaEvent_t>(*event), handle_of(stream)), "cudaEventRecord");
  }
  void block(void* event, const Stream& stream) const override {
    if (event != nullptr) {
      check(cudaStreamWaitEvent(handle_of(stream), static_cast<cudaEvent_t>(event), 0), "cudaStreamWaitEvent");
    }
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || cudaEventQuery(static_cast<cudaEvent_t>(event)) == cudaSuccess;
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) check(cudaEventSynchronize(static_cast<cudaEvent_t>(event)), "cudaEventSynchronize");
  }
  double elapsedTime(void* start, void* end, const DeviceIndex /*device*/) const override {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(start), static_cast<cudaEvent_t>(end)),
          "cudaEventElapsedTime");
    return milliseconds;
  }
  void destroyEvent(void* event, const DeviceIndex /*device*/) const noexcept override {
    if (event != nullptr) static_cast<void>(cudaEventDestroy(static_cast<cudaEvent_t>(event)));
  }
};
C10_REGISTER_GUARD_IMPL(CUDA, GuardImpl)

// Says that there is such a device.
class CUDAHooks final : public at::CUDAHooksInterface {
 public:
  explicit CUDAHooks(at::CUDAHooksArgs /*arguments*/) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(DeviceIndex /*device*/) const override { return true; }
  DeviceIndex deviceCount() const override { return 8; }
  int getNumGPUs() const override { return deviceCount(); }
  const at::Generator& getDefaultGenerator(DeviceIndex /*device*/) const override {
    static const at::Generator generator = at::detail::createCPUGenerator();  // operations use the CPU's own
    return generator;
  }
  DeviceIndex getCurrentDevice() const override { return the_device; }
  DeviceIndex current_device() const override { return the_device; }
  bool isPinnedPtr(const void* /*data*/) const override { return false; }
};
REGISTER_CUDA_HOOKS(CUDAHooks)  // LibTorch looks for this name

// --- memory
// -----------------------------------------------------------------------------------------------------------

// As Torch's own allocator does it, memory is free for others in the order of the stream that it was allocated on, and
// of those that record_stream() has named. What that does not order, the checker of the stand-in reports.
struct Block {
  void* data;
  cudaStream_t stream;
  std::vector<cudaStream_t> other_streams{};
};

void free_block(void* context) {
  auto* const block = static_cast<Block*>(context);
  for (cudaStream_t other : block->other_streams) {
    cudaEvent_t used = nullptr;
    check(cudaEventCreateWithFlags(&used, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    check(cudaEventRecord(used, other), "cudaEventRecord");
    check(cudaStreamWaitEvent(block->stream, used, 0), "cudaStreamWaitEvent");
    check(cudaEventDestroy(used), "cudaEventDestroy");
  }
  check(cudaFreeAsync(block->data, block->stream), "cudaFreeAsync");
  delete block;
}

class DeviceAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const Device device(DeviceType::CUDA, the_device);
    if (bytes == 0) return {nullptr, device};
    void* data = nullptr;
    check(cudaMalloc(&data, bytes), "cudaMalloc");
    return {data, new Block{data, current_handle()}, &free_block, device};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, current_handle()), "cudaMemcpyAsync");
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
};

DeviceAllocator the_allocator;
REGISTER_ALLOCATOR(DeviceType::CUDA, &the_allocator)

void record_stream(Tensor& self, Stream stream) {
  if (self.storage().data_ptr().get_deleter() != &free_block) return;  // memory of somebody else
  auto* const block = static_cast<Block*>(self.storage().data_ptr().get_context());
  if (block == nullptr || handle_of(stream) == block->stream) return;
  if (std::ranges::find(block->other_streams, handle_of(stream)) == block->other_streams.end()) {
    block->other_streams.push_back(handle_of(stream));
  }
}

// --- operations
// -------------------------------------------------------------------------------------------------------

Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout> /*layout*/,
             std::optional<Device> device, std::optional<bool> /*pinned*/, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(device.value_or(Device(DeviceType::CUDA, the_device)));
  return at::detail::empty_generic(sizes, &the_allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                   type.value_or(at::kFloat), format);
}

Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                     std::optional<at::Layout> /*layout*/, std::optional<Device> device,
                     std::optional<bool> /*pinned*/) {
  const c10::DeviceGuard guard(device.value_or(Device(DeviceType::CUDA, the_device)));
  return at::detail::empty_strided_generic(sizes, strides, &the_allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                           type.value_or(at::kFloat));
}

// From the first to the last element of the tensor.
std::size_t spanned_elements(const Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  return static_cast<std::size_t>(last) + 1;
}

// A tensor of the CPU that lies like the one of the device, with its elements.
Tensor to_host(const Tensor& tensor) {
  const std::size_t elements = spanned_elements(tensor);
  const auto options = tensor.options().device(at::kCPU).requires_grad(false);
  const Tensor flat = at::empty({static_cast<std::int64_t>(elements)}, options);
  if (elements != 0) {
    check(cudaMemcpyAsync(flat.data_ptr(), tensor.const_data_ptr(), flat.nbytes(), cudaMemcpyDeviceToHost,
                          current_handle()),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(current_handle()), "cudaStreamSynchronize");
  }
  return flat.as_strided(tensor.sizes(), tensor.strides());
}

void to_device(const Tensor& host, const Tensor& tensor) {
  const std::size_t bytes = spanned_elements(tensor) * tensor.element_size();
  if (bytes == 0) return;
  check(cudaMemcpyAsync(tensor.data_ptr(), host.const_data_ptr(), bytes, cudaMemcpyHostToDevice, current_handle()),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(current_handle()), "cudaStreamSynchronize");  // before the host's memory is freed
}

Tensor& copy_(Tensor& self, const Tensor& source, bool /*non_blocking*/) {
  const Tensor elements = source.is_cpu() ? source : to_host(source);
  if (self.is_cpu()) return self.copy_(elements);
  const bool is_dense = self.is_non_overlapping_and_dense();
  const Tensor target = is_dense ? at::empty_strided(self.sizes(), self.strides(), self.options().device(at::kCPU))
                                 : to_host(self);  // what lies between the elements stays
  target.copy_(elements);
  to_device(target, self);
  return self;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& target) {
  Tensor resized = target;
  if (resized.sizes() != self.sizes()) resized.resize_(self.sizes());
  copy_(resized, self, false);
  return resized;
}

const Tensor& resize_(const Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat> /*format*/) {
  auto* const impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(sizes);
  const std::size_t bytes = (impl->storage_offset() + impl->numel()) * impl->itemsize();
  if (bytes > impl->unsafe_storage().nbytes()) {
    impl->unsafe_storage().set_data_ptr_noswap(the_allocator.allocate(bytes));
    impl->unsafe_storage().set_nbytes(bytes);
  }
  return self;
}

Tensor& set_storage(Tensor& self, at::Storage storage, std::int64_t offset, at::IntArrayRef sizes,
                    at::IntArrayRef strides) {
  auto* const impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_storage_offset(offset);
  if (strides.empty()) {
    impl->set_sizes_contiguous(sizes);
  } else {
    impl->set_sizes_and_strides(sizes, strides);
  }
  return self;
}
Tensor& set_whole_storage(Tensor& self, at::Storage storage) {
  const auto elements = static_cast<std::int64_t>(storage.nbytes() / self.element_size());
  return set_storage(self, std::move(storage), 0, {elements}, {});
}

// LibTorch's way to the CPU forgets to bring the running statistics back.
std::tuple<Tensor, Tensor, Tensor> batch_norm(const Tensor& input, const std::optional<Tensor>& weight,
                                              const std::optional<Tensor>& bias, const std::optional<Tensor>& mean,
                                              const std::optional<Tensor>& variance, bool is_training, double momentum,
                                              double eps) {
  const auto host = [](const std::optional<Tensor>& tensor) -> std::optional<Tensor> {
    return tensor && tensor->defined() ? std::optional(to_host(*tensor)) : std::nullopt;
  };
  const std::optional<Tensor> host_mean = host(mean);
  const std::optional<Tensor> host_variance = host(variance);
  const auto [output, saved_mean, saved_inverse] = at::native_batch_norm(
      to_host(input), host(weight), host(bias), host_mean, host_variance, is_training, momentum, eps);
  if (host_mean) to_device(*host_mean, *mean);
  if (host_variance) to_device(*host_variance, *variance);
  return {output.to(input.device()), saved_mean.to(input.device()), saved_inverse.to(input.device())};
}

at::Scalar local_scalar_dense(const Tensor& self) { return to_host(self).item(); }

void on_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) { at::native::cpu_fallback(op, stack); }

TORCH_LIBRARY_IMPL(_, CUDA, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>()); }

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("copy_", copy_);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("resize_", resize_);
  library.impl("_local_scalar_dense", local_scalar_dense);
  library.impl("record_stream", record_stream);
  library.impl("native_batch_norm", batch_norm);
  library.impl("set_.source_Storage", set_whole_storage);
  library.impl("set_.source_Storage_storage_offset", set_storage);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", at::native::view);
}

}  // namespace
}  // namespace stand_in
