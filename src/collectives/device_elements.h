// What the kernels do with one element, and with a list of pieces. GPUs and the host compile the same lines: nvcc takes
// constexpr functions for both (--expt-relaxed-constexpr), so no macro has to mark them, and tests on the host tell
// what a GPU will calculate.
#pragma once

#include <fedrun/collectives/element_dispatch.h>
#include <fedrun/collectives/types.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace fedrun {

// Elements that lie in one piece, to be cast, scaled and put elsewhere; into themselves if the types agree.
struct CopyPiece {
  const void* from;
  void* to;
  std::uint64_t count;
};

// Arguments of a kernel must fit into 4 KiB.
inline constexpr std::size_t most_pieces = 160;

struct CopyArguments {
  CopyPiece pieces[most_pieces];
  std::uint32_t piece_count;
  DataType from_type;
  DataType to_type;
  double factor;
  double divisor;
};
static_assert(sizeof(CopyArguments) <= 4096);

struct FillArguments {
  void* data;
  std::uint64_t count;
  std::uint64_t bits;  // of one element
  DataType type;
};

// Both f32.
struct FeedbackArguments {
  float* elements;
  float* residuals;
  std::uint64_t count;
  float scale;
  DataType wire;
};

// Rounds, or truncates into the range of an integer.
template <typename T>
constexpr T store_element(double value) {
  if constexpr (std::is_integral_v<T>) {
    if (value != value) return 0;
    if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(value);
  } else {
    return narrow<T>(value);
  }
}

// x · factor / divisor, as reduce_kernels.h says it for one input.
template <typename From, typename To>
struct ScaledCopy {
  double factor;
  double divisor;
  bool is_scaled;

  constexpr explicit ScaledCopy(const CopyArguments& arguments)
      : factor(arguments.factor),
        divisor(arguments.divisor),
        is_scaled(arguments.factor != 1 || arguments.divisor != 1) {}

  constexpr To operator()(From element) const {
    if (!is_scaled) return cast(element);
    const double product = static_cast<double>(widen(element)) * factor;
    return store_element<To>(divisor == 1 ? product : product / divisor);  // f64 divides slowly on most GPUs
  }

 private:
  static constexpr To cast(From element) {
    if constexpr (std::is_same_v<From, To>) {
      return element;
    } else if constexpr (std::is_same_v<From, double>) {
      return store_element<To>(element);
    } else {
      return narrow<To>(widen(element));
    }
  }
};

// Every strides-th element of a piece, beginning with the first-th: one thread's share.
template <typename From, typename To>
constexpr void copy_share(const CopyArguments& arguments, const CopyPiece& piece, std::uint64_t first,
                          std::uint64_t stride) {
  const ScaledCopy<From, To> copy(arguments);
  const auto* from = static_cast<const From*>(piece.from);
  auto* to = static_cast<To*>(piece.to);
  for (std::uint64_t i = first; i < piece.count; i += stride) to[i] = copy(from[i]);
}

template <typename From>
constexpr bool copy_share_from_float(const CopyArguments& arguments, const CopyPiece& piece, std::uint64_t first,
                                     std::uint64_t stride) {
  switch (arguments.to_type) {
    case DataType::f16:
      return copy_share<From, F16>(arguments, piece, first, stride), true;
    case DataType::bf16:
      return copy_share<From, Bf16>(arguments, piece, first, stride), true;
    case DataType::f32:
      return copy_share<From, float>(arguments, piece, first, stride), true;
    default:
      return false;
  }
}

template <typename From>
constexpr bool copy_share_from_integer(const CopyArguments& arguments, const CopyPiece& piece, std::uint64_t first,
                                       std::uint64_t stride) {
  if (arguments.to_type == DataType::f64) return copy_share<From, double>(arguments, piece, first, stride), true;
  if (arguments.to_type != arguments.from_type) return false;
  return copy_share<From, From>(arguments, piece, first, stride), true;
}

constexpr bool copy_share_from_double(const CopyArguments& arguments, const CopyPiece& piece, std::uint64_t first,
                                      std::uint64_t stride) {
  switch (arguments.to_type) {
    case DataType::u8:
      return copy_share<double, std::uint8_t>(arguments, piece, first, stride), true;
    case DataType::i8:
      return copy_share<double, std::int8_t>(arguments, piece, first, stride), true;
    case DataType::i32:
      return copy_share<double, std::int32_t>(arguments, piece, first, stride), true;
    case DataType::i64:
      return copy_share<double, std::int64_t>(arguments, piece, first, stride), true;
    case DataType::f64:
      return copy_share<double, double>(arguments, piece, first, stride), true;
    default:
      return false;
  }
}

// f32, f16 and bf16 become each other; integers become f64 and f64 integers; every type but bool stays itself. False:
// there is no such copy.
constexpr bool copy_share(const CopyArguments& arguments, const CopyPiece& piece, std::uint64_t first,
                          std::uint64_t stride) {
  switch (arguments.from_type) {
    case DataType::u8:
      return copy_share_from_integer<std::uint8_t>(arguments, piece, first, stride);
    case DataType::i8:
      return copy_share_from_integer<std::int8_t>(arguments, piece, first, stride);
    case DataType::i32:
      return copy_share_from_integer<std::int32_t>(arguments, piece, first, stride);
    case DataType::i64:
      return copy_share_from_integer<std::int64_t>(arguments, piece, first, stride);
    case DataType::f16:
      return copy_share_from_float<F16>(arguments, piece, first, stride);
    case DataType::bf16:
      return copy_share_from_float<Bf16>(arguments, piece, first, stride);
    case DataType::f32:
      return copy_share_from_float<float>(arguments, piece, first, stride);
    case DataType::f64:
      return copy_share_from_double(arguments, piece, first, stride);
    case DataType::boolean:
      return false;
  }
  return false;
}

// Is there such a copy? Asked before a kernel is launched, which could tell nobody.
constexpr bool can_copy(DataType from, DataType to) {
  CopyArguments arguments{};
  arguments.from_type = from;
  arguments.to_type = to;
  return copy_share(arguments, CopyPiece{}, 0, 1);
}

// As feedback_kernels.h says it.
template <typename Wire>
constexpr void feedback_share_of(const FeedbackArguments& arguments, std::uint64_t first, std::uint64_t stride) {
  for (std::uint64_t i = first; i < arguments.count; i += stride) {
    const float wanted = arguments.elements[i] * arguments.scale + arguments.residuals[i];
    const float sent = widen(narrow<Wire>(wanted));
    const float rest = wanted - sent;
    arguments.elements[i] = sent;
    arguments.residuals[i] = rest - rest == 0 ? rest : 0;  // not for infinity and NaN
  }
}

constexpr void feedback_share(const FeedbackArguments& arguments, std::uint64_t first, std::uint64_t stride) {
  arguments.wire == DataType::f16 ? feedback_share_of<F16>(arguments, first, stride)
                                  : feedback_share_of<Bf16>(arguments, first, stride);
}

template <typename T>
constexpr void fill_share_of(const FillArguments& arguments, std::uint64_t first, std::uint64_t stride) {
  auto* to = static_cast<T*>(arguments.data);
  for (std::uint64_t i = first; i < arguments.count; i += stride) to[i] = static_cast<T>(arguments.bits);
}

constexpr void fill_share(const FillArguments& arguments, std::uint64_t first, std::uint64_t stride) {
  switch (arguments.type) {
    case DataType::u8:
    case DataType::i8:
    case DataType::boolean:
      return fill_share_of<std::uint8_t>(arguments, first, stride);
    case DataType::f16:
    case DataType::bf16:
      return fill_share_of<std::uint16_t>(arguments, first, stride);
    case DataType::i32:
    case DataType::f32:
      return fill_share_of<std::uint32_t>(arguments, first, stride);
    case DataType::i64:
    case DataType::f64:
      return fill_share_of<std::uint64_t>(arguments, first, stride);
  }
}

}  // namespace fedrun
