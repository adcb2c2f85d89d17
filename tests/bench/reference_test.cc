// The benchmark's "#wrong" is worth something only if it is not always 0.
#include "../../bench/reference.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace fedrun::bench {
namespace {

constexpr std::size_t count = 12;

WorkBuffers loaded_buffers(const Workload& workload) {
  WorkBuffers buffers(workload, allocate_on_heap);
  Reference(workload).load(buffers);
  return buffers;
}

TEST(Reference, FindsEveryElementWrongWhereNothingWasDone) {
  for (const Place place : {Place::in, Place::out}) {
    for (const ReduceOp op : {ReduceOp::average, ReduceOp::sum}) {
      const Workload workload{.op = op, .place = place, .rank = 1, .ranks = 2, .count = count};
      EXPECT_EQ(Reference(workload).count_wrong(loaded_buffers(workload).output()), count) << to_string(op);
    }
  }
  for (const Collective kind : {Collective::reduce_scatter, Collective::allgather, Collective::alltoall}) {
    const Workload workload{.kind = kind, .place = Place::out, .rank = 1, .ranks = 2, .count = count};
    EXPECT_EQ(Reference(workload).count_wrong(loaded_buffers(workload).output()), workload.output_count())
        << to_string(kind);
  }
}

TEST(Reference, FindsWhatTheRootHasNotSent) {
  const Workload workload{.kind = Collective::broadcast, .rank = 1, .ranks = 2, .count = count};
  EXPECT_EQ(Reference(workload).count_wrong(loaded_buffers(workload).output()), count);
}

TEST(Reference, FindsOneWrongElementOfEveryType) {
  for (const DataType type : {DataType::u8, DataType::i8, DataType::i32, DataType::i64, DataType::f16, DataType::bf16,
                              DataType::f32, DataType::f64, DataType::boolean}) {
    const Workload alone{.op = ReduceOp::max, .type = type, .count = count};  // its input is its result
    const WorkBuffers buffers = loaded_buffers(alone);
    EXPECT_EQ(Reference(alone).count_wrong(buffers.output()), 0) << to_string(type);
    std::memset(static_cast<std::byte*>(buffers.output().data) + 5 * size_of(type), 0, size_of(type));
    EXPECT_EQ(Reference(alone).count_wrong(buffers.output()), 1) << to_string(type);
  }
}

TEST(Reference, TakesNotANumberForWrong) {
  const Workload alone{.op = ReduceOp::average, .count = count};
  const WorkBuffers buffers = loaded_buffers(alone);
  static_cast<float*>(buffers.output().data)[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Reference(alone).count_wrong(buffers.output()), 1);
}

}  // namespace
}  // namespace fedrun::bench
