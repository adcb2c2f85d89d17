#include <fedrun/train/gradient_bucket.h>
#include <fedrun/train/tensor_buffer.h>

#include <numeric>

namespace fedrun {
namespace {

// Made from memory and not as a view of a larger tensor: Torch's zero_grad() detaches gradients in place, which it
// refuses for views.
torch::Tensor strided_tensor_in(const std::shared_ptr<Memory>& memory, std::size_t first_element, at::IntArrayRef sizes,
                                at::IntArrayRef strides, torch::ScalarType type) {
  return torch::from_blob(
      static_cast<std::byte*>(memory->data()) + first_element * torch::elementSize(type), sizes, strides,
      [memory](void*) {}, torch::TensorOptions().dtype(type));
}

}  // namespace

torch::Tensor tensor_in(const std::shared_ptr<Memory>& memory, std::size_t first_element, std::size_t elements,
                        torch::ScalarType type) {
  return strided_tensor_in(memory, first_element, {static_cast<std::int64_t>(elements)}, {1}, type);
}

torch::Tensor tensor_like_in(const std::shared_ptr<Memory>& memory, std::size_t first_element,
                             const torch::Tensor& parameter) {
  const bool keeps_strides = parameter.is_non_overlapping_and_dense();
  const std::vector<std::int64_t> strides =
      keeps_strides ? parameter.strides().vec() : torch::empty(parameter.sizes(), torch::kMeta).strides().vec();
  return strided_tensor_in(memory, first_element, parameter.sizes(), strides, parameter.scalar_type());
}

std::size_t GradientBucket::first_of(int rank) const {
  return std::accumulate(parts.begin(), parts.begin() + rank, std::size_t{0});
}

Buffer GradientBucket::part_of(int rank) const {
  return {static_cast<std::byte*>(buffer.data) + first_of(rank) * size_of(buffer.type),
          parts[static_cast<std::size_t>(rank)], buffer.type};
}

torch::Tensor GradientBucket::flat() const { return tensor_in(memory, 0, buffer.count, scalar_type_of(buffer.type)); }

}  // namespace fedrun
