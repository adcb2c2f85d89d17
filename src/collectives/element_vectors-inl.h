// How elements in memory become vectors to calculate with, and back. Compiled once for each SIMD target.
#if defined(FEDRUN_COLLECTIVES_ELEMENT_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEDRUN_COLLECTIVES_ELEMENT_VECTORS_INL_H_
#undef FEDRUN_COLLECTIVES_ELEMENT_VECTORS_INL_H_
#else
#define FEDRUN_COLLECTIVES_ELEMENT_VECTORS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

// The conversions between f32 and f16 that the CPU has. Highway's own replacements for older CPUs do not round to
// nearest even, so those targets use ours.
#undef FEDRUN_NATIVE_F16
#define FEDRUN_NATIVE_F16 (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2)

HWY_BEFORE_NAMESPACE();
namespace fedrun {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A format says what lies in memory (Stored) and what a vector holds (Lane). load and store move Lanes(d) elements.
template <typename T>
struct PlainFormat {
  using Stored = T;
  using Lane = T;

  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const T* from) {
    return hn::LoadU(d, from);
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> values, T* to) {
    hn::StoreU(values, d, to);
  }
};

using F32Format = PlainFormat<float>;

// The low 16 bits of every lane.
template <class D>
HWY_INLINE void store_low_halves(D, hn::Vec<hn::RebindToUnsigned<D>> bits, std::uint16_t* to) {
  const hn::Rebind<std::uint16_t, D> d16;
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(hn::RebindToSigned<D>(), bits)), d16, to);
}

template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> load_low_halves(D, const std::uint16_t* from) {
  return hn::PromoteTo(hn::RebindToUnsigned<D>(), hn::LoadU(hn::Rebind<std::uint16_t, D>(), from));
}

// The arithmetic of to_bf16 and to_float in half.h.
struct Bf16Format {
  using Stored = std::uint16_t;
  using Lane = float;

  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const std::uint16_t* from) {
    return hn::BitCast(d, hn::ShiftLeft<16>(load_low_halves(d, from)));
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> values, std::uint16_t* to) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, values);
    const auto upper = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(upper, hn::Set(du, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF))));
    const auto quiet_nan = hn::Or(upper, hn::Set(du, 0x40));
    const auto is_nan = hn::RebindMask(du, hn::IsNaN(values));
    store_low_halves(d, hn::IfThenElse(is_nan, quiet_nan, rounded), to);
  }
};

struct F16Format {
  using Stored = std::uint16_t;
  using Lane = float;

#if FEDRUN_NATIVE_F16
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const std::uint16_t* from) {
    const hn::Rebind<std::uint16_t, D> d16;
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), hn::LoadU(d16, from)));
  }
  template <class D>
  static HWY_INLINE void store(D, hn::Vec<D> values, std::uint16_t* to) {
    const hn::Rebind<std::uint16_t, D> d16;
    hn::StoreU(hn::BitCast(d16, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), values)), d16, to);
  }
#else  // the arithmetic of to_f16 and to_float in half.h
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const std::uint16_t* from) {
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    const auto bits = load_low_halves(d, from);
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000)));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFF));
    const auto rebias = hn::Set(du, 0x38000000);  // 112 exponents
    const auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), rebias);
    const auto subnormal = hn::BitCast(du, hn::Mul(hn::ConvertTo(d, hn::BitCast(di, magnitude)), hn::Set(d, 0x1p-24F)));
    const auto signed_magnitude = hn::BitCast(di, magnitude);
    const auto is_subnormal = hn::RebindMask(du, hn::Lt(signed_magnitude, hn::Set(di, 0x400)));
    const auto is_infinite_or_nan = hn::RebindMask(du, hn::Gt(signed_magnitude, hn::Set(di, 0x7BFF)));
    const auto finite = hn::IfThenElse(is_subnormal, subnormal, normal);
    return hn::BitCast(d, hn::Or(sign, hn::IfThenElse(is_infinite_or_nan, hn::Add(normal, rebias), finite)));
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> values, std::uint16_t* to) {
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    const auto bits = hn::BitCast(du, values);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
    const auto rounding = hn::Add(odd, hn::Set(du, 0xFFF));
    const auto normal = hn::ShiftRight<13>(hn::Sub(hn::Add(magnitude, rounding), hn::Set(du, 0x38000000)));
    const auto shifted = hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5F));
    const auto subnormal = hn::Sub(hn::BitCast(du, shifted), hn::Set(du, 0x3F000000));
    const auto signed_magnitude = hn::BitCast(di, magnitude);
    const auto is_subnormal = hn::RebindMask(du, hn::Lt(signed_magnitude, hn::Set(di, 0x38800000)));
    const auto is_infinite = hn::RebindMask(du, hn::Gt(signed_magnitude, hn::Set(di, 0x477FEFFF)));
    const auto is_nan = hn::RebindMask(du, hn::Gt(signed_magnitude, hn::Set(di, 0x7F800000)));
    const auto finite = hn::IfThenElse(is_subnormal, subnormal, normal);
    const auto not_nan = hn::IfThenElse(is_infinite, hn::Set(du, 0x7C00), finite);
    store_low_halves(d, hn::Or(sign, hn::IfThenElse(is_nan, hn::Set(du, 0x7E00), not_nan)), to);
  }
#endif
};

// To nearest even, with infinity where f32 ends. Highway's portable targets would stop at the largest f32.
template <class D32, class V64>
HWY_INLINE hn::Vec<D32> round_to_floats(D32 d, V64 values) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  const hn::Rebind<double, D32> d64;
  double doubles[hn::MaxLanes(d64)];
  float floats[hn::MaxLanes(d)];
  hn::StoreU(values, d64, doubles);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) floats[i] = static_cast<float>(doubles[i]);
  return hn::LoadU(d, floats);
#else
  return hn::DemoteTo(d, values);
#endif
}

// The same elements as f64, for sums that f32 would round too early.
template <class Format>
struct WideFormat {
  using Stored = typename Format::Stored;
  using Lane = double;

  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const Stored* from) {
    return hn::PromoteTo(d, Format::load(hn::Rebind<float, D>(), from));
  }
  template <class D>
  static HWY_INLINE void store(D, hn::Vec<D> values, Stored* to) {
    const hn::Rebind<float, D> d32;
    Format::store(d32, round_to_floats(d32, values), to);
  }
};

template <>
struct WideFormat<PlainFormat<double>> : PlainFormat<double> {};

// `count` elements from one format to another; the lanes must agree.
template <class From, class To>
HWY_INLINE void convert(const typename From::Stored* from, typename To::Stored* to, std::size_t count) {
  using Lane = typename From::Lane;
  const hn::ScalableTag<Lane> d;
  const hn::CappedTag<Lane, 1> d1;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto first = From::load(d, from + i);
    const auto second = From::load(d, from + i + lanes);
    To::store(d, first, to + i);
    To::store(d, second, to + i + lanes);
  }
  for (; i < count; ++i) To::store(d1, From::load(d1, from + i), to + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace fedrun
HWY_AFTER_NAMESPACE();

#endif  // include guard that flips with every target
