#include <fedrun/collectives/combine_kernels.h>

#include <algorithm>
#include <array>
#include <type_traits>

// Targets that differ little from others only cost compile time: a CPU with SSSE3 and without SSE4 takes the scalar
// one.
#define HWY_DISABLED_TARGETS HWY_SSSE3
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fedrun/collectives/combine_kernels.cc"
#include <hwy/foreach_target.h>
// foreach_target.h comes first: it includes this file again for each target.
#include <fedrun/collectives/element_vectors-inl.h>
#include <hwy/highway.h>

// Compiled with -ffp-contract=off: only some targets can fuse a multiplication with an addition, and there the compiler
// would, so that weighted sums would differ between machines.

HWY_BEFORE_NAMESPACE();
namespace fedrun {
namespace HWY_NAMESPACE {

struct Sum {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V combine(D, V sum, V next) {
    return hn::Add(sum, next);
  }
};

struct Product {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V combine(D d, V product, V next) {
    using T = hn::TFromD<D>;
    if constexpr (sizeof(T) == 4 || std::is_floating_point_v<T>) {
      return hn::Mul(product, next);
    } else {
      // Highway multiplies neither bytes nor 64-bit integers, and products of those are too rare for tricks.
      HWY_ALIGN T products[hn::MaxLanes(d)];
      HWY_ALIGN T factors[hn::MaxLanes(d)];
      hn::Store(product, d, products);
      hn::Store(next, d, factors);
      for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
        products[i] = static_cast<T>(static_cast<std::uint64_t>(products[i]) * static_cast<std::uint64_t>(factors[i]));
      }
      return hn::Load(d, products);
    }
  }
};

// Written as a comparison because the min and max of the targets disagree about NaN and the sign of zero.
template <bool larger>
struct Extreme {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V combine(D, V best, V next) {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      const auto better = larger ? hn::Gt(next, best) : hn::Lt(next, best);
      return hn::IfThenElse(hn::Or(better, hn::IsNaN(next)), next, best);
    } else {
      return larger ? hn::Max(best, next) : hn::Min(best, next);
    }
  }
};
using Smallest = Extreme<false>;
using Largest = Extreme<true>;

struct AnyOf {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V combine(D, V any, V next) {
    return hn::Or(any, next);
  }
};

struct AllOf {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V combine(D, V all, V next) {
    return hn::And(all, next);
  }
};

// Σ wᵢ·xᵢ; the lanes are f64, so that a weighted average of f32 is rounded once, where f32 would round every product
// with a number of samples. For two ranks with 64 MiB, one core takes 1.1 to 1.3 times as long as for the plain sum; in
// cache three times.
struct WeightedSum : Sum {};

// The same for a number of ranks that the compiler knows, each with one input and one output; it then keeps all the
// pointers in registers.
template <std::size_t ranks>
struct FixedCombineTerms : CombineTerms {
  explicit FixedCombineTerms(const CombineTerms& terms) : CombineTerms(terms) {
    std::copy_n(terms.inputs.begin(), ranks, inputs.begin());
    std::copy_n(terms.outputs.begin(), ranks, outputs.begin());
  }
  std::array<const void*, ranks> inputs;
  std::array<void*, ranks> outputs;
};

template <class D, class V = hn::Vec<D>>
HWY_INLINE V scale_doubles(D d, V values, double factor, double divisor) {
  const V product = hn::Mul(values, hn::Set(d, factor));
  return divisor == 1 ? product : hn::Div(product, hn::Set(d, divisor));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V scale_floats_as_doubles(D d, V values, double factor, double divisor) {
#if HWY_TARGET != HWY_SCALAR  // which has no halves of vectors
  if constexpr (hn::MaxLanes(d) > 1) {
    const hn::Half<D> half;
    const hn::Rebind<double, hn::Half<D>> d64;
    const auto low = scale_doubles(d64, hn::PromoteTo(d64, hn::LowerHalf(half, values)), factor, divisor);
    const auto high = scale_doubles(d64, hn::PromoteTo(d64, hn::UpperHalf(half, values)), factor, divisor);
    return hn::Combine(d, round_to_floats(half, high), round_to_floats(half, low));
  } else
#endif
  {
    const hn::Rebind<double, D> d64;
    return round_to_floats(d, scale_doubles(d64, hn::PromoteTo(d64, values), factor, divisor));
  }
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V scale(D d, V values, const CombineTerms& terms) {
  using Lane = hn::TFromD<D>;
  if constexpr (std::is_same_v<Lane, double>) {
    return scale_doubles(d, values, terms.factor, terms.divisor);
  } else if constexpr (std::is_same_v<Lane, float>) {
    if (terms.scaling == Scaling::narrow) return hn::Mul(values, hn::Set(d, static_cast<float>(terms.factor)));
    return scale_floats_as_doubles(d, values, terms.factor, terms.divisor);
  } else {
    return values;
  }
}

template <class In, class Op, class D>
HWY_INLINE hn::Vec<D> load(D d, const typename In::Stored* from, const CombineTerms& terms, std::size_t input) {
  const auto values = In::load(d, from);
  if constexpr (std::is_same_v<Op, WeightedSum>) {
    return hn::Mul(values, hn::Set(d, terms.weights[input]));
  } else {
    return values;
  }
}

template <class Format, class Terms>
const typename Format::Stored* input_at(const Terms& terms, std::size_t input, std::size_t i) {
  return static_cast<const typename Format::Stored*>(terms.inputs[input]) + terms.first + i;
}

template <class Format, class Terms>
typename Format::Stored* output_at(const Terms& terms, std::size_t output, std::size_t i) {
  return static_cast<typename Format::Stored*>(terms.outputs[output]) + terms.output_first + i;
}

// One vector of results.
template <class In, class Out, class Op, class D, class Terms>
HWY_INLINE void combine_vector(D d, const Terms& terms, std::size_t i) {
  auto result = load<In, Op>(d, input_at<In>(terms, 0, i), terms, 0);
  for (std::size_t k = 1; k < terms.inputs.size(); ++k) {
    result = Op::combine(d, result, load<In, Op>(d, input_at<In>(terms, k, i), terms, k));
  }
  if (terms.scaling != Scaling::none) result = scale(d, result, terms);
  for (std::size_t k = 0; k < terms.outputs.size(); ++k) Out::store(d, result, output_at<Out>(terms, k, i));
}

// Four vectors of results, so that the loops over inputs and outputs cost little. Highway allows no arrays of vectors,
// hence four variables.
template <class In, class Out, class Op, class D, class Terms>
HWY_INLINE void combine_four_vectors(D d, const Terms& terms, std::size_t i) {
  const std::size_t lanes = hn::Lanes(d);
  const auto* head = input_at<In>(terms, 0, i);
  auto r0 = load<In, Op>(d, head, terms, 0);
  auto r1 = load<In, Op>(d, head + lanes, terms, 0);
  auto r2 = load<In, Op>(d, head + 2 * lanes, terms, 0);
  auto r3 = load<In, Op>(d, head + 3 * lanes, terms, 0);
  for (std::size_t k = 1; k < terms.inputs.size(); ++k) {
    const auto* next = input_at<In>(terms, k, i);
    r0 = Op::combine(d, r0, load<In, Op>(d, next, terms, k));
    r1 = Op::combine(d, r1, load<In, Op>(d, next + lanes, terms, k));
    r2 = Op::combine(d, r2, load<In, Op>(d, next + 2 * lanes, terms, k));
    r3 = Op::combine(d, r3, load<In, Op>(d, next + 3 * lanes, terms, k));
  }
  if (terms.scaling != Scaling::none) {
    r0 = scale(d, r0, terms);
    r1 = scale(d, r1, terms);
    r2 = scale(d, r2, terms);
    r3 = scale(d, r3, terms);
  }
  for (std::size_t k = 0; k < terms.outputs.size(); ++k) {
    auto* to = output_at<Out>(terms, k, i);
    Out::store(d, r0, to);
    Out::store(d, r1, to + lanes);
    Out::store(d, r2, to + 2 * lanes);
    Out::store(d, r3, to + 3 * lanes);
  }
}

// terms is a copy of our own, so that no store through an output can change it and it stays in registers: without that
// two ranks took twice as long.
//
// Ordinary stores, also for large buffers: an allreduce in place has just read the lines that it writes, and stores
// that bypass the caches took 1.3 to 1.5 times as long for 2 × 64 MiB (limit_streaming of kernels_bench).
template <class In, class Out, class Op, class Terms = CombineTerms>
HWY_NOINLINE void combine_with(const Terms terms) {
  using Lane = typename In::Lane;
  const hn::ScalableTag<Lane> d;
  const hn::CappedTag<Lane, 1> d1;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 4 * lanes <= terms.count; i += 4 * lanes) combine_four_vectors<In, Out, Op>(d, terms, i);
  for (; i + lanes <= terms.count; i += lanes) combine_vector<In, Out, Op>(d, terms, i);
  for (; i < terms.count; ++i) combine_vector<In, Out, Op>(d1, terms, i);
}

// Two, three and four ranks in cache take 0.7 times as long with code of their own; eight gain nothing.
template <class In, class Out>
void sum_floats(const CombineTerms& terms) {
  if (terms.weights != nullptr) return combine_with<WideFormat<In>, WideFormat<Out>, WeightedSum>(terms);
  if constexpr (std::is_same_v<In, Out> && std::is_same_v<typename In::Lane, float>) {
    const std::size_t ranks = terms.inputs.size();
    const bool in_pairs = ranks == terms.outputs.size();
    if (in_pairs && ranks == 2) return combine_with<In, Out, Sum>(FixedCombineTerms<2>(terms));
    if (in_pairs && ranks == 3) return combine_with<In, Out, Sum>(FixedCombineTerms<3>(terms));
    if (in_pairs && ranks == 4) return combine_with<In, Out, Sum>(FixedCombineTerms<4>(terms));
  }
  return combine_with<In, Out, Sum>(terms);
}

template <class In, class Out = In>
void combine_floats(const CombineTerms& terms) {
  switch (terms.op) {
    case ReduceOp::adasum:  // a weighted sum, as far as elements are concerned
    case ReduceOp::average:
    case ReduceOp::sum:
      return sum_floats<In, Out>(terms);
    case ReduceOp::min:
      return combine_with<In, Out, Smallest>(terms);
    case ReduceOp::max:
      return combine_with<In, Out, Largest>(terms);
    case ReduceOp::product:
      return combine_with<In, Out, Product>(terms);
  }
}

template <typename T>
void combine_integers(const CombineTerms& terms) {
  using Format = PlainFormat<T>;
  switch (terms.op) {
    case ReduceOp::adasum:  // a weighted sum, as far as elements are concerned
    case ReduceOp::average:
    case ReduceOp::sum:
      return combine_with<Format, Format, Sum>(terms);
    case ReduceOp::min:
      return combine_with<Format, Format, Smallest>(terms);
    case ReduceOp::max:
      return combine_with<Format, Format, Largest>(terms);
    case ReduceOp::product:
      return combine_with<Format, Format, Product>(terms);
  }
}

void combine_bools(const CombineTerms& terms) {
  using Format = PlainFormat<std::uint8_t>;
  const bool all = terms.op == ReduceOp::min || terms.op == ReduceOp::product;
  return all ? combine_with<Format, Format, AllOf>(terms) : combine_with<Format, Format, AnyOf>(terms);
}

void combine_on_this_target(const CombineTerms& terms) {
  switch (terms.type) {
    case DataType::u8:
      return combine_integers<std::uint8_t>(terms);
    case DataType::i8:
      return combine_integers<std::int8_t>(terms);
    case DataType::i32:
      return combine_integers<std::int32_t>(terms);
    case DataType::i64:
      return combine_integers<std::int64_t>(terms);
    case DataType::f16:
      return combine_floats<F16Format>(terms);
    case DataType::bf16:
      return combine_floats<Bf16Format>(terms);
    case DataType::f32:
      return combine_floats<F32Format>(terms);
    case DataType::f64:
      return combine_floats<PlainFormat<double>>(terms);
    case DataType::boolean:
      return combine_bools(terms);
  }
}

void combine_into_f32_on_this_target(const CombineTerms& terms) {
  if (terms.type == DataType::f16) return combine_floats<F16Format, F32Format>(terms);
  if (terms.type == DataType::bf16) return combine_floats<Bf16Format, F32Format>(terms);
  return combine_floats<F32Format>(terms);
}

}  // namespace HWY_NAMESPACE
}  // namespace fedrun
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fedrun {
namespace {

HWY_EXPORT(combine_on_this_target);
HWY_EXPORT(combine_into_f32_on_this_target);

}  // namespace

void combine(const CombineTerms& terms) { HWY_DYNAMIC_DISPATCH(combine_on_this_target)(terms); }

void combine_into_f32(const CombineTerms& terms) { HWY_DYNAMIC_DISPATCH(combine_into_f32_on_this_target)(terms); }

}  // namespace fedrun
#endif  // HWY_ONCE
