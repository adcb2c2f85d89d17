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
  int group = -1;  // parameters of the same group share a bucket, whatever its size; -1: sizes decide
  Device device = Device::cpu;
};

// A slot is where one gradient lies in its bucket.
struct BucketSlot {
  std::size_t parameter = 0;
  std::size_t first_element = 0;
};

// A bucket is what one allreduce moves: gradients of one type on one device, in the order in which backward produces
// them.
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

// Slots begin at multiples of this many elements, and sharded buckets are divided there: more than any vector register
// holds, so that Torch's loops treat every element alike wherever a bucket is cut.
inline constexpr std::size_t slot_alignment = 64;

// Places the parameters that `order` lists, in that order: the one in which backward is expected to reach them. A
// bucket is closed when it holds at least its size, so a parameter larger than that has a bucket to itself, or when its
// group is complete.
std::vector<Bucket> plan_buckets(std::span<const PlannedParameter> parameters, std::span<const std::size_t> order,
                                 const BucketSizes& sizes = {});

// The elements of a bucket that each rank has where they are divided. The last takes what is left over, because NCCL
// likes equal parts.
std::vector<std::size_t> parts_of(std::size_t elements, int ranks);

// Backward reaches the last layer first.
std::vector<std::size_t> last_to_first(std::size_t parameters);

}  // namespace fedrun
