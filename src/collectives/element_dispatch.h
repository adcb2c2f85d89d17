// Turns a DataType known at run time into a C++ type, and halves into numbers that arithmetic works on.
#pragma once

#include <fedrun/collectives/half.h>
#include <fedrun/collectives/types.h>

#include <cstdint>
#include <type_traits>

namespace fedrun {

// Calls use(static_cast<T*>(nullptr)) with the T of this type; the pointer only carries the type.
template <typename Use>
void dispatch_element_type(DataType type, Use&& use) {
  switch (type) {
    case DataType::u8:
      return use(static_cast<std::uint8_t*>(nullptr));
    case DataType::i8:
      return use(static_cast<std::int8_t*>(nullptr));
    case DataType::i32:
      return use(static_cast<std::int32_t*>(nullptr));
    case DataType::i64:
      return use(static_cast<std::int64_t*>(nullptr));
    case DataType::f16:
      return use(static_cast<F16*>(nullptr));
    case DataType::bf16:
      return use(static_cast<Bf16*>(nullptr));
    case DataType::f32:
      return use(static_cast<float*>(nullptr));
    case DataType::f64:
      return use(static_cast<double*>(nullptr));
    case DataType::boolean:
      return use(static_cast<bool*>(nullptr));
  }
}

template <typename T>
constexpr auto widen(T value) {
  if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, Bf16>) {
    return to_float(value);
  } else {
    return value;
  }
}

template <typename T, typename Wide>
constexpr T narrow(Wide value) {
  if constexpr (std::is_same_v<T, F16>) {
    return to_f16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, Bf16>) {
    return to_bf16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace fedrun
