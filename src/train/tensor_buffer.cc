#include <fedrun/core/error.h>
#include <fedrun/train/tensor_buffer.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

namespace fedrun {

namespace {

std::optional<DataType> find_data_type(torch::ScalarType type) {
  switch (type) {
    case torch::kUInt8:
      return DataType::u8;
    case torch::kInt8:
      return DataType::i8;
    case torch::kInt32:
      return DataType::i32;
    case torch::kInt64:
      return DataType::i64;
    case torch::kFloat16:
      return DataType::f16;
    case torch::kBFloat16:
      return DataType::bf16;
    case torch::kFloat32:
      return DataType::f32;
    case torch::kFloat64:
      return DataType::f64;
    case torch::kBool:
      return DataType::boolean;
    default:
      return std::nullopt;
  }
}

std::string_view conversion_of(torch::ScalarType type) {
  if (torch::isComplexType(type)) return "pass torch::view_as_real(tensor)";
  return "convert it, such as with tensor.to(torch::kInt32) or tensor.to(torch::kFloat32)";
}

}  // namespace

DataType data_type_of_tensor(const torch::Tensor& tensor, std::string_view name) {
  const std::optional<DataType> type = find_data_type(tensor.scalar_type());
  if (type) return *type;
  throw UsageError(fmt::format("tensor '{}' has type {}, which cannot be communicated: {}", name,
                               torch::toString(tensor.scalar_type()), conversion_of(tensor.scalar_type())));
}

Buffer buffer_of(const torch::Tensor& tensor, std::string_view name) {
  if (!tensor.device().is_cpu()) {
    throw UsageError(
        fmt::format("tensor '{}' is on {}, but this version of fedrun communicates CPU tensors only: move the "
                    "model to session.device()",
                    name, tensor.device().str()));
  }
  if (!tensor.is_contiguous()) {
    throw UsageError(fmt::format("tensor '{}' is not contiguous: pass tensor.contiguous()", name));
  }
  return {tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()), data_type_of_tensor(tensor, name)};
}

torch::Tensor pack(const torch::Tensor& tensor, std::string_view operation) {
  if (!tensor.defined()) throw UsageError(fmt::format("{}: the tensor is undefined: give it a value first", operation));
  if (tensor.layout() != torch::kStrided) {
    throw UsageError(fmt::format("{}: the tensor is sparse: pass tensor.to_dense()", operation));
  }
  if (!tensor.device().is_cpu()) {
    throw UsageError(fmt::format(
        "{}: the tensor is on {}, but this version of fedrun communicates CPU tensors only: pass tensor.cpu()",
        operation, tensor.device().str()));
  }
  if (!find_data_type(tensor.scalar_type())) {
    throw UsageError(fmt::format("{}: the tensor has type {}, which cannot be communicated: {}", operation,
                                 torch::toString(tensor.scalar_type()), conversion_of(tensor.scalar_type())));
  }
  return tensor.detach().resolve_neg().contiguous();
}

std::string describe_tensor(std::string_view name, const torch::Tensor& tensor) {
  return fmt::format("{} {}[{}]", name, to_string(data_type_of_tensor(tensor, name)), fmt::join(tensor.sizes(), ", "));
}

}  // namespace fedrun
