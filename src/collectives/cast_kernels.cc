#include <fedrun/collectives/cast_kernels.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>

#include <cstring>

#define HWY_DISABLED_TARGETS HWY_SSSE3  // see combine_kernels.cc
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fedrun/collectives/cast_kernels.cc"
#include <hwy/foreach_target.h>
// foreach_target.h comes first: it includes this file again for each target.
#include <fedrun/collectives/element_vectors-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fedrun {
namespace HWY_NAMESPACE {

template <class From>
void cast_from(ConstBuffer from, Buffer to) {
  const auto* source = static_cast<const typename From::Stored*>(from.data);
  switch (to.type) {
    case DataType::f16:
      return convert<From, F16Format>(source, static_cast<std::uint16_t*>(to.data), to.count);
    case DataType::bf16:
      return convert<From, Bf16Format>(source, static_cast<std::uint16_t*>(to.data), to.count);
    default:
      return convert<From, F32Format>(source, static_cast<float*>(to.data), to.count);
  }
}

void cast_floats(ConstBuffer from, Buffer to) {
  switch (from.type) {
    case DataType::f16:
      return cast_from<F16Format>(from, to);
    case DataType::bf16:
      return cast_from<Bf16Format>(from, to);
    default:
      return cast_from<F32Format>(from, to);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fedrun
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fedrun {
namespace {

HWY_EXPORT(cast_floats);

bool can_cast(DataType type) { return type == DataType::f32 || type == DataType::f16 || type == DataType::bf16; }

}  // namespace

void cast(ConstBuffer from, Buffer to) {
  if (from.count != to.count) {
    throw UsageError(fmt::format("cast from {} elements to {}: give buffers of one length", from.count, to.count));
  }
  if (from.count == 0) return;
  if (from.type == to.type) {
    std::memcpy(to.data, from.data, to.bytes());
  } else if (can_cast(from.type) && can_cast(to.type)) {
    HWY_DYNAMIC_DISPATCH(cast_floats)(from, to);
  } else {
    throw UsageError(fmt::format("{} cannot be cast to {}: f32, f16 and bf16 can be cast to each other",
                                 to_string(from.type), to_string(to.type)));
  }
}

}  // namespace fedrun
#endif  // HWY_ONCE
