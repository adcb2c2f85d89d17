// One way to carry out a workload, with the memory that it works on; what is measured against the others.
#pragma once

#include <fedrun/collectives/memory.h>

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "workload.h"

namespace fedrun::bench {

// One memory for input and output where the workload is in place, else one for each.
class WorkBuffers {
 public:
  using Allocate = std::function<Memory(std::size_t)>;

  // Each has room for the whole, because some ways to allocate want the same size on every rank.
  WorkBuffers(const Workload& workload, const Allocate& allocate)
      : input_memory_(allocate(workload.bytes())),
        input_{input_memory_.data(), workload.input_count(), workload.type},
        output_{input_memory_.data(), workload.output_count(), workload.type} {
    if (workload.place == Place::in) return;
    output_memory_.emplace(allocate(workload.bytes()));
    output_.data = output_memory_->data();
  }

  Buffer input() const { return input_; }
  Buffer output() const { return output_; }

 private:
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
};

// The buffers of the single operations of an asynchronous workload.
inline std::vector<Buffer> operation_buffers(const Workload& workload, Buffer whole) {
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < workload.async_operations; ++i) {
    const std::size_t count = workload.count_of_one_call();
    auto* first = static_cast<std::byte*>(whole.data) + i * count * size_of(whole.type);
    buffers.push_back({first, count, whole.type});
  }
  return buffers;
}

}  // namespace fedrun::bench
