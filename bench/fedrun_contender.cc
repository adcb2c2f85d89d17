#include "fedrun_contender.h"

#include <fmt/format.h>

#include <string>

namespace fedrun::bench {
namespace {

WorkBuffers::Allocate allocator(Communicator& world, MemoryKind memory) {
  if (memory == MemoryKind::ordinary) return allocate_on_heap;
  return [&world](std::size_t bytes) { return world.allocate(bytes); };
}

class FedrunContender final : public Contender {
 public:
  FedrunContender(Communicator& world, const Workload& workload, MemoryKind memory)
      : world_(world),
        workload_(workload),
        memory_(memory),
        buffers_(workload, allocator(world, memory)),
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

 private:
  ReduceOptions reduction() const { return {.op = workload_.op, .wire = workload_.wire}; }

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
  WorkBuffers buffers_;
  std::vector<std::size_t> parts_;
  // Of the single asynchronous operations, if the workload has them.
  std::vector<Buffer> inputs_;
  std::vector<Buffer> outputs_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Work>> under_way_;
};

}  // namespace

std::unique_ptr<Contender> make_fedrun_contender(Communicator& world, const Workload& workload, MemoryKind memory) {
  return std::make_unique<FedrunContender>(world, workload, memory);
}

}  // namespace fedrun::bench
