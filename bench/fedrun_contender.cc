#include "fedrun_contender.h"

#include <fmt/format.h>

#include <string>

namespace fedrun::bench {
namespace {

WorkBuffers::Allocate allocator(Communicator& world, MemoryKind memory, DeviceCopies* copies) {
  if (memory == MemoryKind::allocated) {
    return [&world, device = copies ? Device::cuda : Device::cpu](std::size_t bytes) {
      return world.allocate(bytes, device);
    };
  }
  if (copies) return [copies](std::size_t bytes) { return copies->allocate(bytes); };
  return allocate_on_heap;
}

class FedrunContender final : public Contender {
 public:
  FedrunContender(Communicator& world, const Workload& workload, MemoryKind memory, DeviceCopies* copies)
      : world_(world),
        workload_(workload),
        memory_(memory),
        is_on_device_(copies != nullptr),
        buffers_(workload, allocator(world, memory, copies), copies),
        parts_(workload.parts()),
        inputs_(operation_buffers(workload, buffers_.input())),
        outputs_(operation_buffers(workload, buffers_.output())),
        under_way_(workload.async_operations) {
    for (std::size_t i = 0; i < workload.async_operations; ++i) names_.push_back(fmt::format("bench.{}", i));
  }

  std::string_view system() const override { return "fedrun"; }
  std::string_view memory() const override { return memory_ == MemoryKind::allocated ? "allocated" : "ordinary"; }
  const WorkBuffers& buffers() const override { return buffers_; }

  void run() override {
    if (workload_.is_async()) return run_together();
    if (is_on_device_ && workload_.kind != Collective::barrier) return run_in_stream();
    const Buffer input = buffers_.input();
    const Buffer output = buffers_.output();
    switch (workload_.kind) {
      case Collective::allreduce:
        return world_.allreduce(input, output, reduction());
      case Collective::reduce_scatter:
        return world_.reduce_scatter(input, output, parts_, reduction());
      case Collective::broadcast:
        return world_.broadcast(output);
      case Collective::allgather:
        return world_.allgather(input, output, parts_);
      case Collective::gather:
        return world_.gather(input, output, parts_);
      case Collective::alltoall:
        return world_.alltoall(input, parts_, output, parts_);
      case Collective::barrier:
        return world_.barrier();
      case Collective::join:  // is no workload
        return;
    }
  }

  // The operations of a group are done in their order, so that the last one tells of all.
  void finish() override {
    if (last_) last_->wait();
    last_.reset();
  }

 private:
  ReduceOptions reduction() const { return {.op = workload_.op, .wire = workload_.wire}; }

  void run_in_stream() {
    last_ = start();
    last_->wait_in_stream(buffers_.input().stream);
  }

  std::unique_ptr<Work> start() {
    const Buffer input = buffers_.input();
    const Buffer output = buffers_.output();
    switch (workload_.kind) {
      case Collective::allreduce:
        return world_.allreduce_async(input, output, reduction());
      case Collective::reduce_scatter:
        return world_.reduce_scatter_async(input, output, parts_, reduction());
      case Collective::broadcast:
        return world_.broadcast_async(output);
      case Collective::allgather:
        return world_.allgather_async(input, output, parts_);
      case Collective::gather:
        return world_.gather_async(input, output, parts_);
      case Collective::alltoall:
        return world_.alltoall_async(input, parts_, output, parts_);
      case Collective::barrier:
      case Collective::join:  // have no elements
        break;
    }
    return world_.barrier_async();
  }

  void run_together() {
    ReduceOptions options = reduction();
    for (std::size_t i = 0; i < under_way_.size(); ++i) {
      options.name = names_[i];
      under_way_[i] = world_.allreduce_async(inputs_[i], outputs_[i], options);
    }
    for (const auto& work : under_way_) work->wait();
  }

  Communicator& world_;
  Workload workload_;
  MemoryKind memory_;
  bool is_on_device_;
  WorkBuffers buffers_;
  std::vector<std::size_t> parts_;
  // Of the single asynchronous operations, if the workload has them.
  std::vector<Buffer> inputs_;
  std::vector<Buffer> outputs_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Work>> under_way_;
  std::unique_ptr<Work> last_;  // that was put on a stream
};

}  // namespace

std::unique_ptr<Contender> make_fedrun_contender(Communicator& world, const Workload& workload, MemoryKind memory,
                                                 DeviceCopies* copies) {
  return std::make_unique<FedrunContender>(world, workload, memory, copies);
}

}  // namespace fedrun::bench
