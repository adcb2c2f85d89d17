#include <fedrun/collectives/device_kernels.h>
#include <fedrun/collectives/feedback_kernels.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>

#define HWY_DISABLED_TARGETS HWY_SSSE3  // see combine_kernels.cc
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fedrun/collectives/feedback_kernels.cc"
#include <hwy/foreach_target.h>
// foreach_target.h comes first: it includes this file again for each target.
#include <fedrun/collectives/element_vectors-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fedrun {
namespace HWY_NAMESPACE {

template <class Wire, class D>
HWY_INLINE void round_lanes(D d, float* elements, float* residuals, hn::Vec<D> scale) {
  const auto wanted = hn::Add(hn::Mul(hn::LoadU(d, elements), scale), hn::LoadU(d, residuals));
  std::uint16_t halves[hn::MaxLanes(d)];
  Wire::store(d, wanted, halves);
  const auto sent = Wire::load(d, halves);
  const auto rest = hn::Sub(wanted, sent);
  hn::StoreU(sent, d, elements);
  hn::StoreU(hn::IfThenElseZero(hn::IsFinite(rest), rest), d, residuals);
}

template <class Wire>
void round_all(float* elements, float* residuals, std::size_t count, float scale) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) round_lanes<Wire>(d, elements + i, residuals + i, hn::Set(d, scale));
  for (; i < count; ++i) round_lanes<Wire>(d1, elements + i, residuals + i, hn::Set(d1, scale));
}

void round_floats(float* elements, float* residuals, std::size_t count, const Feedback& feedback) {
  feedback.wire == DataType::f16 ? round_all<F16Format>(elements, residuals, count, feedback.scale)
                                 : round_all<Bf16Format>(elements, residuals, count, feedback.scale);
}

}  // namespace HWY_NAMESPACE
}  // namespace fedrun
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fedrun {
namespace {

HWY_EXPORT(round_floats);

void check(const Buffer& elements, const Buffer& residuals, DataType wire) {
  if (wire != DataType::f16 && wire != DataType::bf16) {
    throw UsageError(
        fmt::format("round_with_feedback: {} is not a type to round to: use f16 or bf16", to_string(wire)));
  }
  if (elements.type != DataType::f32 || residuals.type != DataType::f32) {
    throw UsageError(fmt::format("round_with_feedback of {} with residuals of {}: both must be f32",
                                 to_string(elements.type), to_string(residuals.type)));
  }
  if (elements.count != residuals.count || elements.device != residuals.device) {
    throw UsageError(
        fmt::format("round_with_feedback of {} elements with {} residuals: give as many, on the same device",
                    elements.count, residuals.count));
  }
}

}  // namespace

void round_with_feedback(const Buffer& elements, const Buffer& residuals, const Feedback& feedback) {
  check(elements, residuals, feedback.wire);
  if (elements.count == 0) return;
  if (elements.device == Device::cuda) return round_with_feedback_on_device(elements, residuals, feedback);
  HWY_DYNAMIC_DISPATCH(round_floats)
  (static_cast<float*>(elements.data), static_cast<float*>(residuals.data), elements.count, feedback);
}

}  // namespace fedrun
#endif  // HWY_ONCE
