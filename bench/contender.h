// One way to carry out a workload, with the memory that it works on; what is measured against the others.
#pragma once

#include <fedrun/collectives/memory.h>

#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "device_copies.h"
#include "workload.h"

namespace fedrun::bench {

// One memory for input and output where the workload is in place, else one for each.
class WorkBuffers {
 public:
  using Allocate = std::function<Memory(std::size_t)>;

  // Each has room for the whole, because some ways to allocate want the same size on every rank. With `copies`, the
  // memory is that of a GPU; they must outlive the buffers.
  WorkBuffers(const Workload& workload, const Allocate& allocate, DeviceCopies* copies = nullptr)
      : copies_(copies),
        input_memory_(allocate(workload.bytes())),
        input_(view(input_memory_, workload.input_count(), workload.type)),
        output_(view(input_memory_, workload.output_count(), workload.type)) {
    if (workload.place == Place::in) return;
    output_memory_.emplace(allocate(workload.bytes()));
    output_.data = output_memory_->data();
  }

  Buffer input() const { return input_; }
  Buffer output() const { return output_; }

  void write_input(const std::vector<std::byte>& bytes) const {
    if (bytes.empty()) return;
    copies_ ? copies_->write(input_.data, bytes.data(), bytes.size())
            : static_cast<void>(std::memcpy(input_.data, bytes.data(), bytes.size()));
  }
  void fill_input(int byte) const { fill(input_, byte); }
  void fill_output(int byte) const { fill(output_, byte); }

  // The output itself, or a copy of it in memory that the host can read; valid until the next call.
  Buffer output_for_host() const {
    if (!copies_ || output_.count == 0) return output_;
    host_output_.resize(output_.bytes());
    copies_->read(host_output_.data(), output_.data, host_output_.size());
    return {host_output_.data(), output_.count, output_.type};
  }

 private:
  Buffer view(const Memory& memory, std::size_t count, DataType type) const {
    Buffer buffer{memory.data(), count, type};
    if (!copies_) return buffer;
    buffer.device = Device::cuda;
    buffer.stream = copies_->stream();
    return buffer;
  }
  void fill(Buffer buffer, int byte) const {
    if (buffer.count == 0) return;
    copies_ ? copies_->fill(buffer.data, byte, buffer.bytes())
            : static_cast<void>(std::memset(buffer.data, byte, buffer.bytes()));
  }

  DeviceCopies* copies_;  // nullptr: host memory
  mutable std::vector<std::byte> host_output_{};
  Memory input_memory_;
  std::optional<Memory> output_memory_;
  Buffer input_;
  Buffer output_;
};

// Used by one thread. Every rank has the same contenders and runs them in the same order.
class Contender {
 public:
  virtual ~Contender() = default;

  virtual std::string_view system() const = 0;  // fedrun, mpi or limit
  virtual std::string_view memory() const = 0;  // allocated or ordinary
  virtual const WorkBuffers& buffers() const = 0;
  virtual void run() = 0;
  // Returns when the results of all calls are in place, where run() does not wait for that.
  virtual void finish() {}
};

// The buffers of the single operations of an asynchronous workload.
inline std::vector<Buffer> operation_buffers(const Workload& workload, Buffer whole) {
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < workload.async_operations; ++i) {
    const std::size_t count = workload.count_of_one_call();
    auto* first = static_cast<std::byte*>(whole.data) + i * count * size_of(whole.type);
    buffers.push_back({first, count, whole.type, whole.device, whole.stream});
  }
  return buffers;
}

}  // namespace fedrun::bench
