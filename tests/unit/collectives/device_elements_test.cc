// What GPUs calculate, calculated by the same lines on the host and compared with the CPU's kernels bit by bit.
#include <fedrun/collectives/cast_kernels.h>
#include <fedrun/collectives/device_elements.h>
#include <fedrun/collectives/reduce_kernels.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <random>
#include <tuple>
#include <vector>

#include "support/plain_reduction.h"

namespace fedrun {
namespace {

// Every half; of wider types, numbers of all magnitudes, and those where something changes.
template <typename T>
std::vector<T> interesting_values() {
  std::vector<T> values;
  std::mt19937_64 random(7);
  if constexpr (sizeof(T) <= 2) {
    for (std::uint32_t bits = 0; bits < 1U << (8 * sizeof(T)); ++bits) {
      using Bits = std::conditional_t<sizeof(T) == 1, std::uint8_t, std::uint16_t>;
      values.push_back(std::bit_cast<T>(static_cast<Bits>(bits)));
    }
  } else {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    for (int i = 0; i < 100'000; ++i) values.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
    for (int i = -70'000; i < 70'000; ++i) values.push_back(static_cast<T>(i));
    for (const double edge :
         {65504.0, 65519.996, 65520.0, 6.1e-5, 5.96e-8, 2.98e-8, 127.5, 255.5, 2147483647.5, 9.3e18}) {
      values.push_back(store_element<T>(edge));
      values.push_back(store_element<T>(-edge));
    }
  }
  return values;
}

struct Scale {
  double factor;
  double divisor;
};
constexpr std::array<Scale, 6> scales = {{{1, 1}, {0.25, 1}, {1, 3}, {1.0 / 3, 1}, {7, 5}, {-1e-3, 1}}};

CopyArguments arguments_for(DataType from, DataType to, const Scale& scale) {
  CopyArguments arguments{};
  arguments.from_type = from;
  arguments.to_type = to;
  arguments.factor = scale.factor;
  arguments.divisor = scale.divisor;
  return arguments;
}

template <typename From, typename To>
void expect_bits_of_cpu(const Scale& scale) {
  const std::vector<From> values = interesting_values<From>();
  std::vector<To> by_device(values.size());
  std::vector<To> by_cpu(values.size());
  const CopyPiece piece{values.data(), by_device.data(), values.size()};
  const CopyArguments arguments = arguments_for(data_type_of<From>(), data_type_of<To>(), scale);
  constexpr std::uint64_t threads = 3;
  for (std::uint64_t thread = 0; thread < threads; ++thread) {
    ASSERT_TRUE(copy_share(arguments, piece, thread, threads));
  }
  const void* const input = values.data();
  void* const output = by_cpu.data();
  reduce({.inputs = {&input, 1},
          .outputs = {&output, 1},
          .count = values.size(),
          .type = data_type_of<From>(),
          .output_type = data_type_of<To>(),
          .factor = scale.factor,
          .divisor = scale.divisor});
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_TRUE(same_bits(by_device[i], by_cpu[i]))
        << to_string(data_type_of<From>()) << " to " << to_string(data_type_of<To>()) << " of " << +widen(values[i])
        << " times " << scale.factor << " / " << scale.divisor << " is " << +widen(by_device[i]) << ", not "
        << +widen(by_cpu[i]);
  }
}

template <typename From, typename... To>
void expect_bits_of_cpu_to() {
  for (const Scale& scale : scales) (expect_bits_of_cpu<From, To>(scale), ...);
}

TEST(DeviceElements, FloatsAreCastAndScaledAsOnTheCpu) {
  expect_bits_of_cpu_to<F16, F16, Bf16, float>();
  expect_bits_of_cpu_to<Bf16, F16, Bf16, float>();
  expect_bits_of_cpu_to<float, F16, Bf16, float>();
  expect_bits_of_cpu_to<double, double>();
}

TEST(DeviceElements, IntegersAreCastAndScaledAsOnTheCpu) {
  expect_bits_of_cpu_to<std::uint8_t, std::uint8_t, double>();
  expect_bits_of_cpu_to<std::int8_t, std::int8_t, double>();
  expect_bits_of_cpu_to<std::int32_t, std::int32_t, double>();
  expect_bits_of_cpu_to<std::int64_t, std::int64_t, double>();
  expect_bits_of_cpu_to<double, std::uint8_t, std::int8_t, std::int32_t, std::int64_t>();
}

TEST(DeviceElements, KnowWhatCannotBeCast) {
  EXPECT_TRUE(can_copy(DataType::f32, DataType::f16));
  EXPECT_TRUE(can_copy(DataType::i64, DataType::f64));
  EXPECT_FALSE(can_copy(DataType::f32, DataType::f64));
  EXPECT_FALSE(can_copy(DataType::i32, DataType::i64));
  EXPECT_FALSE(can_copy(DataType::boolean, DataType::boolean));
  EXPECT_FALSE(can_copy(DataType::f16, DataType::i32));
}

TEST(DeviceElements, ThreadsShareAPieceWithoutGapsOrOverlap) {
  for (const std::uint64_t count : {0U, 1U, 7U, 255U, 256U, 257U, 1025U}) {
    std::vector<float> from(count);
    for (std::size_t i = 0; i < count; ++i) from[i] = static_cast<float>(i);
    std::vector<float> to(count + 1, -1);
    const CopyPiece piece{from.data(), to.data(), count};
    for (std::uint64_t thread = 0; thread < 256; ++thread) {
      copy_share(arguments_for(DataType::f32, DataType::f32, {2, 1}), piece, thread, 256);
    }
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(to[i], 2 * from[i]);
    EXPECT_EQ(to[count], -1) << "written beyond the end";
  }
}

TEST(DeviceElements, FillEveryTypeWithItsBits) {
  for (const DataType type : {DataType::u8, DataType::f16, DataType::i32, DataType::f64, DataType::boolean}) {
    std::vector<std::byte> memory(9 * size_of(type), std::byte{0x11});
    const std::uint64_t bits = 0x0807060504030201;
    fill_share({memory.data(), 8, bits, type}, 0, 1);
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const auto expected = i < 8 * size_of(type) ? i % size_of(type) + 1 : 0x11;
      ASSERT_EQ(std::to_integer<std::size_t>(memory[i]), expected);
    }
  }
}

}  // namespace
}  // namespace fedrun
