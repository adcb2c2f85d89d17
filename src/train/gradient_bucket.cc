#include <fedrun/train/gradient_bucket.h>
#include <fedrun/train/tensor_buffer.h>

#include <numeric>

namespace fedrun {
namespace {

// Made from memory and not as a view of a larger tensor: Torch's zero_grad() detaches gradients in place, which it
// refuses for views.
torch::Tensor strided_tensor_in(const std::shared_ptr<Memory>& memory, std::size_t first_element, at::IntArrayRef sizes,
                                at::IntArrayRef strides, const torch::TensorOptions& options) {
  const at::AutoDispatchBelowAutograd no_autograd;  // as in torch::from_blob, which takes no index of a GPU
  return at::for_blob(static_cast<std::byte*>(memory->data()) + first_element * options.dtype().itemsize(), sizes)
      .strides(strides)
      .deleter([memory](void*) {})
      .options(options.requires_grad(false))
      .target_device(options.device())
      .make_tensor();
}

}  // namespace

torch::Tensor tensor_in(const std::shared_ptr<Memory>& memory, std::size_t first_element, std::size_t elements,
                        const torch::TensorOptions& options) {
  return strided_tensor_in(memory, first_element, {static_cast<std::int64_t>(elements)}, {1}, options);
}

torch::Tensor tensor_like_in(const std::shared_ptr<Memory>& memory, std::size_t first_element,
                             const torch::Tensor& parameter, std::optional<torch::ScalarType> type) {
  const bool keeps_strides = parameter.is_non_overlapping_and_dense();
  const std::vector<std::int64_t> strides =
      keeps_strides ? parameter.strides().vec() : torch::empty(parameter.sizes(), torch::kMeta).strides().vec();
  return strided_tensor_in(memory, first_element, parameter.sizes(), strides,
                           parameter.options().dtype(type.value_or(parameter.scalar_type())));
}

std::size_t GradientBucket::first_of(int rank) const {
  return std::accumulate(parts.begin(), parts.begin() + rank, std::size_t{0});
}

Buffer GradientBucket::part_of(int rank) const {
  Buffer part = buffer;
  part.data = static_cast<std::byte*>(buffer.data) + first_of(rank) * size_of(buffer.type);
  part.count = parts[static_cast<std::size_t>(rank)];
  return part;
}

torch::Tensor GradientBucket::flat() const {
  return tensor_in(memory, 0, buffer.count, torch::dtype(scalar_type_of(buffer.type)).device(device()));
}

}  // namespace fedrun
