// Random numbers that depend only on their key, so that what is drawn for image or client i is the same whoever draws
// it, on however many ranks and in whatever order.
#pragma once

#include <cstdint>

namespace fedrun {

// SplitMix64, started at a hash of the key; the same numbers on every machine. Cheap to make; each thread makes its
// own.
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

  // From 0 to bound - 1, each equally likely. 2^64 is rarely a multiple of bound, so the lowest 2^64 mod bound draws
  // are rejected; what remains is a multiple.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t rejected = (0 - bound) % bound;
    std::uint64_t draw = next();
    while (draw < rejected) draw = next();
    return draw % bound;
  }

  // At least 0 and less than 1, in steps of 2^-53.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  static constexpr std::uint64_t increment = 0x9e3779b97f4a7c15;

  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace fedrun
