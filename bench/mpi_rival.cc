#include "mpi_rival.h"

#include <fedrun/collectives/mpi_call.h>

#include <limits>

namespace fedrun::bench {
namespace {

// Messages of its own, whatever fedrun has under way.
class OwnWorld {
 public:
  OwnWorld() { check_mpi("MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &communicator_)); }
  ~OwnWorld() { MPI_Comm_free(&communicator_); }
  OwnWorld(const OwnWorld&) = delete;
  OwnWorld& operator=(const OwnWorld&) = delete;

  MPI_Comm get() const { return communicator_; }

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
};

MPI_Datatype mpi_type(DataType type) {
  switch (type) {
    case DataType::u8:
      return MPI_UINT8_T;
    case DataType::i8:
      return MPI_INT8_T;
    case DataType::i32:
      return MPI_INT32_T;
    case DataType::i64:
      return MPI_INT64_T;
    case DataType::f16:
    case DataType::bf16:
      return MPI_UINT16_T;  // is only moved: MPI cannot add them
    case DataType::f32:
      return MPI_FLOAT;
    case DataType::f64:
      return MPI_DOUBLE;
    case DataType::boolean:
      return MPI_C_BOOL;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op mpi_op(DataType type, ReduceOp op) {
  const bool is_bool = type == DataType::boolean;
  switch (op) {
    case ReduceOp::sum:
      return is_bool ? MPI_LOR : MPI_SUM;
    case ReduceOp::min:
      return is_bool ? MPI_LAND : MPI_MIN;
    case ReduceOp::max:
      return is_bool ? MPI_LOR : MPI_MAX;
    case ReduceOp::product:
      return is_bool ? MPI_LAND : MPI_PROD;
    case ReduceOp::average:
    case ReduceOp::adasum:
      break;
  }
  return MPI_OP_NULL;
}

class MpiRival final : public Contender {
 public:
  explicit MpiRival(const Workload& workload)
      : workload_(workload),
        buffers_(workload, allocate_on_heap),
        type_(mpi_type(workload.type)),
        op_(mpi_op(workload.type, workload.op)),
        inputs_(operation_buffers(workload, buffers_.input())),
        outputs_(operation_buffers(workload, buffers_.output())),
        under_way_(workload.async_operations, MPI_REQUEST_NULL) {}

  std::string_view system() const override { return "mpi"; }
  std::string_view memory() const override { return "ordinary"; }
  const WorkBuffers& buffers() const override { return buffers_; }

  void run() override {
    if (workload_.is_async()) return run_together();
    check_mpi(workload_.name().data(), call());
  }

 private:
  int call() {
    const void* in = buffers_.input().data;
    void* out = buffers_.output().data;
    const int whole = static_cast<int>(workload_.count);
    const int part = static_cast<int>(workload_.part());
    switch (workload_.kind) {
      case Collective::allreduce:
        return MPI_Allreduce(input_or_in_place(buffers_.input()), out, whole, type_, op_, world_.get());
      case Collective::reduce_scatter:
        return MPI_Reduce_scatter_block(in, out, part, type_, op_, world_.get());
      case Collective::broadcast:
        return MPI_Bcast(out, whole, type_, 0, world_.get());
      case Collective::allgather:
        return MPI_Allgather(in, part, type_, out, part, type_, world_.get());
      case Collective::gather:
        return MPI_Gather(in, part, type_, out, part, type_, 0, world_.get());
      case Collective::alltoall:
        return MPI_Alltoall(in, part, type_, out, part, type_, world_.get());
      case Collective::barrier:
        return MPI_Barrier(world_.get());
      case Collective::join:  // is no workload
        break;
    }
    return MPI_SUCCESS;
  }

  void run_together() {
    for (std::size_t i = 0; i < under_way_.size(); ++i) {
      check_mpi("MPI_Iallreduce",
                MPI_Iallreduce(input_or_in_place(inputs_[i]), outputs_[i].data, static_cast<int>(outputs_[i].count),
                               type_, op_, world_.get(), &under_way_[i]));
    }
    check_mpi("MPI_Waitall", MPI_Waitall(static_cast<int>(under_way_.size()), under_way_.data(), MPI_STATUSES_IGNORE));
  }

  const void* input_or_in_place(Buffer input) const { return workload_.place == Place::in ? MPI_IN_PLACE : input.data; }

  Workload workload_;
  OwnWorld world_;
  WorkBuffers buffers_;
  MPI_Datatype type_;
  MPI_Op op_;
  // Of the single asynchronous operations, if the workload has them.
  std::vector<Buffer> inputs_;
  std::vector<Buffer> outputs_;
  std::vector<MPI_Request> under_way_;
};

}  // namespace

std::unique_ptr<Contender> make_mpi_rival(const Workload& workload) {
  int has_started = 0;
  MPI_Initialized(&has_started);
  if (has_started == 0) {
    throw UsageError("--compare mpi: this process has no MPI; start it with fedrun, and not with FEDRUN_BACKEND=self");
  }
  constexpr int largest = std::numeric_limits<int>::max();
  if (workload.count > static_cast<std::size_t>(largest)) {
    throw UsageError(fmt::format("--compare mpi: {} elements are more than the {} of one MPI call; make -e smaller",
                                 workload.count, largest));
  }
  return std::make_unique<MpiRival>(workload);
}

}  // namespace fedrun::bench
