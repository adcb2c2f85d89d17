// How a reduction is divided between NCCL, which adds, and the kernels before and after it, which scale and cast.
#pragma once

#include <fedrun/collectives/device_group.h>

#include <cstdint>
#include <optional>

namespace fedrun {

// The same on every rank, except for `takes_part`, `before` and `multiplier`.
struct DeviceReduction {
  DataType type = DataType::f32;       // in which the elements are reduced
  ReduceOp op = ReduceOp::sum;         // sum, min, max or product
  bool is_empty = false;               // nobody takes part: the result is 0
  bool takes_part = true;              // else this rank brings elements that change nothing
  bool uses_scratch = false;           // some rank must, so all do: NCCL wants the same kind of memory from everybody
  double before = 1;                   // by which a kernel multiplies this rank's elements, or
  std::optional<double> multiplier{};  // NCCL itself does: a power of two, so that nothing is rounded
  double factor = 1;                   // by which a kernel multiplies the result,
  double divisor = 1;                  // and divides it
};

bool is_float(DataType type);

DeviceReduction plan_device_reduction(const DeviceTerms& terms, int rank, int ranks);

// The bits of the element that changes nothing.
std::uint64_t neutral_bits(ReduceOp op, DataType type);

}  // namespace fedrun
