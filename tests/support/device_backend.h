// Lets tests that know nothing of GPUs run on one: their elements are copied there, worked on, and copied back.
#pragma once

#include <fedrun/collectives/backend.h>
#include <fedrun/collectives/cuda_handles.h>

#include <exception>
#include <memory>
#include <thread>
#include <utility>

namespace fedrun::test {

class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes = 0) {
    if (bytes != 0) check_cuda(cudaMalloc(&data_, bytes), "cudaMalloc");
  }
  DeviceMemory(DeviceMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceMemory() {
    if (data_ != nullptr) static_cast<void>(cudaFree(data_));
  }
  void* get() const { return data_; }

 private:
  void* data_ = nullptr;
};

// One operation, and where its elements lie meanwhile.
class CopiedWork final : public Work {
 public:
  CopiedWork(Buffer host_output, bool waits_in_stream, cudaStream_t stream)
      : host_output_(host_output), waits_in_stream_(waits_in_stream), stream_(stream) {}
  ~CopiedWork() override {
    if (has_result_ || has_failed_ || std::uncaught_exceptions() > exceptions_at_start_) return;
    try {
      wait();
    } catch (const Error&) {
    }
  }

  // The elements of the operation, on the device.
  Operation on_device(Operation operation) {
    const bool is_in_place = operation.output.data == operation.input.data && operation.output.count != 0;
    input_ = DeviceMemory(operation.input.bytes());
    if (operation.input.count != 0) {
      check_cuda(
          cudaMemcpyAsync(input_.get(), operation.input.data, operation.input.bytes(), cudaMemcpyHostToDevice, stream_),
          "cudaMemcpyAsync");
    }
    if (!is_in_place) output_ = DeviceMemory(operation.output.bytes());
    device_output_ = is_in_place ? input_.get() : output_.get();
    operation.input = {input_.get(), operation.input.count, operation.input.type, Device::cuda, stream_};
    operation.output = {device_output_, operation.output.count, operation.output.type, Device::cuda, stream_};
    return operation;
  }
  void set_work(std::unique_ptr<Work> work) { work_ = std::move(work); }

  bool done() override {
    if (has_result_ || has_failed_) return true;
    if (!work_->done()) return false;
    try {
      work_->wait();
      copy_back();
    } catch (const Error&) {
      has_failed_ = true;
    }
    return true;
  }

  void wait() override {
    if (has_result_) return;
    try {
      waits_in_stream_ ? work_->wait_in_stream(stream_) : work_->wait();
    } catch (const Error&) {
      has_failed_ = true;
      throw;
    }
    copy_back();
  }

 private:
  void copy_back() {
    if (host_output_.count != 0) {
      check_cuda(
          cudaMemcpyAsync(host_output_.data, device_output_, host_output_.bytes(), cudaMemcpyDeviceToHost, stream_),
          "cudaMemcpyAsync");
    }
    // A host that only waited for its stream would launch nothing, and another rank's stream may wait for that.
    copied_.record(stream_);
    while (!copied_.has_happened()) {
      static_cast<void>(work_->done());
      std::this_thread::yield();
    }
    has_result_ = true;
  }

  Buffer host_output_;
  bool waits_in_stream_;
  cudaStream_t stream_;
  DeviceMemory input_;
  DeviceMemory output_;
  void* device_output_ = nullptr;
  CudaEvent copied_;
  std::unique_ptr<Work> work_;
  bool has_result_ = false;
  bool has_failed_ = false;
  int exceptions_at_start_ = std::uncaught_exceptions();
};

class DeviceBackend final : public Backend {
 public:
  // "nccl", or the name of what gives the same bits.
  explicit DeviceBackend(std::unique_ptr<Backend> inner, std::string_view name)
      : inner_(std::move(inner)), name_(name) {}

  std::string_view name() const override { return name_; }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }

  std::unique_ptr<Work> start(Operation operation, Then then) override {
    if (!moves_elements(operation)) return inner_->start(std::move(operation), std::move(then));
    number_ += 1;
    auto work = std::make_unique<CopiedWork>(takes_output(operation) ? operation.output : Buffer{}, number_ % 2 == 0,
                                             stream_.get());
    work->set_work(inner_->start(work->on_device(std::move(operation)), std::move(then)));
    return work;
  }
  void run(Operation operation) override {
    if (!moves_elements(operation)) return inner_->run(std::move(operation));
    start(std::move(operation), {})->wait();
  }
  std::unique_ptr<Backend> split(std::optional<int> color, int key) override {
    auto made = inner_->split(color, key);
    if (!made) return nullptr;
    return std::make_unique<DeviceBackend>(std::move(made), name_);
  }
  Memory allocate(std::size_t bytes, Device device) override { return inner_->allocate(bytes, device); }

 private:
  // Adasum, and agreements about groups, are of the host.
  static bool moves_elements(const Operation& operation) {
    return operation.kind != Collective::barrier && operation.kind != Collective::join && operation.group_digest == 0 &&
           operation.reduction.op != ReduceOp::adasum && !operation.name.starts_with("fedrun:adasum");
  }
  bool takes_output(const Operation& operation) const {
    return operation.kind != Collective::gather || operation.root == rank();
  }

  std::unique_ptr<Backend> inner_;
  std::string_view name_;
  CudaStream stream_;
  unsigned number_ = 0;
};

}  // namespace fedrun::test
