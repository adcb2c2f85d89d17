// Carries out a ReducePlan on elements that lie in front of us.
#pragma once

#include <fedrun/collectives/reduce_kernels.h>
#include <fedrun/collectives/streams.h>

#include <cstring>
#include <span>

namespace fedrun {

// The inputs are the plan's sources, in order. Where nobody takes part the result is 0.
inline void combine_sources(const ReducePlan& plan, DataType type, std::uint64_t count,
                            std::span<const void* const> inputs, std::span<void* const> outputs) {
  if (inputs.empty()) {
    for (void* output : outputs) std::memset(output, 0, count * size_of(type));
    return;
  }
  reduce({.inputs = inputs,
          .outputs = outputs,
          .count = count,
          .type = type,
          .op = plan.op,
          .weights = plan.weights,
          .factor = plan.postscale,
          .divisor = plan.divisor});
}

}  // namespace fedrun
