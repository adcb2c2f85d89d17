// Random whole numbers that depend only on their key, so that image i is the same whoever draws it and in whatever
// order.
#pragma once

#include <cstdint>

namespace fedrun::data {

// SplitMix64, started at a hash of the key. Whole numbers only: they are the same on every machine.
// Cheap to make; each thread makes its own.
class KeyedRandom {
 public:
  // Different streams of one seed are for different purposes, so that they share no numbers.
  KeyedRandom(std::uint64_t seed, std::uint64_t stream, std::uint64_t index)
      : state_(mix(mix(mix(seed + increment) + stream + increment) + index + increment)) {}

  std::uint64_t next() {
    state_ += increment;
    return mix(state_);
  }

  // From smallest to largest, both included. The bias is below range / 2^32, which no picture shows.
  int between(int smallest, int largest) {
    const std::uint64_t range = static_cast<std::uint64_t>(std::int64_t{largest} - smallest + 1);
    return smallest + static_cast<int>((next() >> 32) * range >> 32);
  }

 private:
  static constexpr std::uint64_t increment = 0x9e3779b97f4a7c15;

  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace fedrun::data
