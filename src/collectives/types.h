// The words that every collective shares: element types, reduce operations, and views of memory to work on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string_view>
#include <type_traits>

namespace fedrun {

// f16 is IEEE half precision, bf16 the upper half of an f32.
enum class DataType : std::uint8_t { u8, i8, i32, i64, f16, bf16, f32, f64, boolean };

// average divides by the weight that took part: the number of ranks, unless they say otherwise.
// adasum adds what points in different directions and averages what points in the same one; adasum.h says how.
enum class ReduceOp : std::uint8_t { average, sum, min, max, product, adasum };

// Where elements lie: in the memory of the host, or of this rank's GPU.
enum class Device : std::uint8_t { cpu, cuda };

std::size_t size_of(DataType type);
std::string_view to_string(DataType type);
std::string_view to_string(ReduceOp op);

// C++20 has no half types, so these carry their bits; half.h converts them.
struct F16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};

template <typename T>
constexpr DataType data_type_of() {
  if constexpr (std::is_same_v<T, std::uint8_t>) return DataType::u8;
  if constexpr (std::is_same_v<T, std::int8_t>) return DataType::i8;
  if constexpr (std::is_same_v<T, std::int32_t>) return DataType::i32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DataType::i64;
  if constexpr (std::is_same_v<T, F16>) return DataType::f16;
  if constexpr (std::is_same_v<T, Bf16>) return DataType::bf16;
  if constexpr (std::is_same_v<T, float>) return DataType::f32;
  if constexpr (std::is_same_v<T, double>) return DataType::f64;
  if constexpr (std::is_same_v<T, bool>) return DataType::boolean;
}

// Anything with a DataType of its own.
template <typename T>
concept Element = std::is_same_v<decltype(data_type_of<T>()), DataType>;

// A view of elements that a collective reads and writes; it owns nothing. A GPU works in the order of streams: elements
// on one are ready when the work that is on `stream`, a cudaStream_t, at the time of the call has been done.
struct Buffer {
  void* data = nullptr;
  std::size_t count = 0;
  DataType type = DataType::f32;
  Device device = Device::cpu;
  void* stream = nullptr;
  int gpu = -1;  // its index on this host, where the caller knows it: another than this rank's is an error

  std::size_t bytes() const { return count * size_of(type); }
};

// A view of elements that a collective only reads.
struct ConstBuffer {
  const void* data = nullptr;
  std::size_t count = 0;
  DataType type = DataType::f32;
  Device device = Device::cpu;
  void* stream = nullptr;
  int gpu = -1;

  ConstBuffer() = default;
  ConstBuffer(const void* where, std::size_t elements, DataType element_type, Device on = Device::cpu,
              void* ready_on = nullptr)
      : data(where), count(elements), type(element_type), device(on), stream(ready_on) {}
  ConstBuffer(const Buffer& buffer)
      : data(buffer.data),
        count(buffer.count),
        type(buffer.type),
        device(buffer.device),
        stream(buffer.stream),
        gpu(buffer.gpu) {}

  std::size_t bytes() const { return count * size_of(type); }
};

// A vector, array, span, …: whatever lies in one piece and holds elements.
template <typename R>
concept ElementRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    Element<std::remove_const_t<std::ranges::range_value_t<R>>>;

template <ElementRange R>
Buffer as_buffer(R&& elements) {
  return {.data = std::ranges::data(elements),
          .count = std::ranges::size(elements),
          .type = data_type_of<std::ranges::range_value_t<R>>()};
}
template <ElementRange R>
ConstBuffer as_const_buffer(R&& elements) {
  return {std::ranges::data(elements), std::ranges::size(elements), data_type_of<std::ranges::range_value_t<R>>()};
}

}  // namespace fedrun
