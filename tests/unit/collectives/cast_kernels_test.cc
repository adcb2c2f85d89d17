#include <fedrun/collectives/cast_kernels.h>
#include <fedrun/collectives/half.h>
#include <fedrun/core/error.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "guarded_memory.h"
#include "simd_targets.h"
#include "support/plain_reduction.h"

namespace fedrun {
namespace {

template <typename To, typename From>
std::vector<To> casted(const std::vector<From>& from) {
  std::vector<To> to(from.size());
  cast(as_const_buffer(from), as_buffer(to));
  return to;
}

template <typename Half>
std::vector<Half> every_half() {
  std::vector<Half> halves(0x10000);
  for (std::size_t bits = 0; bits < halves.size(); ++bits) halves[bits].bits = static_cast<std::uint16_t>(bits);
  return halves;
}

// Every 16-bit float, its neighbours, and the middle between it and the next with its neighbours; then arbitrary bits.
template <typename Half>
std::vector<float> floats_near_halves() {
  std::vector<float> floats;
  for (const Half half : every_half<Half>()) {
    const auto bits = std::bit_cast<std::uint32_t>(to_float(half));
    const auto next = std::bit_cast<std::uint32_t>(to_float(Half{static_cast<std::uint16_t>(half.bits + 1)}));
    const std::uint32_t middle = bits + (next - bits) / 2;
    for (const std::uint32_t near : {bits, middle}) {
      for (std::uint32_t step = 0; step < 3; ++step) floats.push_back(std::bit_cast<float>(near + step - 1));
    }
  }
  std::mt19937 random(1);  // NOLINT: the same values in every run
  for (int i = 0; i < 1'000'000; ++i) floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return floats;
}

template <typename To, typename From>
To plain_cast(From from) {
  return narrow<To>(widen(from));
}

template <typename To, typename From>
void expect_plain_casts(const std::vector<From>& from) {
  const std::vector<To> to = casted<To>(from);
  for (std::size_t i = 0; i < from.size(); ++i) {
    ASSERT_TRUE(same_bits(to[i], plain_cast<To>(from[i]))) << "element " << i << ": " << widen(from[i]);
  }
}

TEST(Cast, EveryHalfBecomesTheFloatOfHalfH) {
  for_each_simd_target([] {
    expect_plain_casts<float>(every_half<F16>());
    expect_plain_casts<float>(every_half<Bf16>());
  });
}

TEST(Cast, EveryHalfBecomesTheOtherHalf) {
  for_each_simd_target([] {
    expect_plain_casts<Bf16>(every_half<F16>());
    expect_plain_casts<F16>(every_half<Bf16>());
  });
}

TEST(Cast, FloatsRoundAsInHalfH) {
  for_each_simd_target([] {
    expect_plain_casts<F16>(floats_near_halves<F16>());
    expect_plain_casts<Bf16>(floats_near_halves<Bf16>());
  });
}

template <typename From, typename To>
void expect_no_byte_too_far(std::size_t count) {
  GuardedMemory source;
  GuardedMemory target;
  From* from = reinterpret_cast<From*>(source.place(count * sizeof(From), 0));
  To* to = reinterpret_cast<To*>(target.place(count * sizeof(To), 0));
  for (std::size_t i = 0; i < count; ++i) from[i] = narrow<From>(static_cast<float>(i));
  cast({from, count, data_type_of<From>()}, {to, count, data_type_of<To>()});
  for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(same_bits(to[i], plain_cast<To>(from[i]))) << i;
  ASSERT_TRUE(target.is_intact_around_place());
}

TEST(Cast, TouchesOnlyItsElements) {
  for_each_simd_target([] {
    for (const std::size_t count : {0, 1, 7, 8, 9, 31, 33, 1023, 1024, 1025}) {
      expect_no_byte_too_far<float, F16>(count);
      expect_no_byte_too_far<float, Bf16>(count);
      expect_no_byte_too_far<F16, float>(count);
      expect_no_byte_too_far<Bf16, float>(count);
      expect_no_byte_too_far<F16, Bf16>(count);
      expect_no_byte_too_far<double, double>(count);
    }
  });
}

TEST(Cast, RejectsWhatItCannotDo) {
  std::vector<float> floats(2);
  std::vector<double> doubles(2);
  std::vector<float> one(1);
  EXPECT_THROW(cast(as_const_buffer(floats), as_buffer(doubles)), UsageError);
  EXPECT_THROW(cast(as_const_buffer(floats), as_buffer(one)), UsageError);
}

}  // namespace
}  // namespace fedrun
