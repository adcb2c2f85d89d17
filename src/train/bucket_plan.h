// Decides which gradients travel together, before training starts, so that no rank has to ask another later.
#pragma once

#include <fedrun/collectives/types.h>

#include <cstddef>
#include <span>
#include <vector>

namespace fedrun {

struct PlannedParameter {
  std::size_t elements = 0;
  DataType type = DataType::f32;
};

// A slot is where one gradient lies in its bucket.
struct BucketSlot {
  std::size_t parameter = 0;
  std::size_t first_element = 0;
};

// A bucket is what one allreduce moves: gradients of one type, in the order in which backward produces them.
struct Bucket {
  DataType type = DataType::f32;
  std::size_t elements = 0;
  std::vector<BucketSlot> slots;
};

struct BucketSizes {
  // The first bucket is small, so that communication starts early in backward.
  std::size_t first_bytes = std::size_t{1} << 20;
  std::size_t bytes = std::size_t{25} << 20;
};

// Takes the parameters in reverse, because backward reaches the last layer first. A bucket is closed when it holds at
// least its size, so a parameter larger than that has a bucket to itself. Slots begin at multiples of a cache line.
std::vector<Bucket> plan_buckets(std::span<const PlannedParameter> parameters, const BucketSizes& sizes = {});

}  // namespace fedrun
