#include <fedrun/core/error.h>
#include <fedrun/train/tensor_buffer.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace fedrun {

namespace {

constexpr std::array<std::pair<torch::ScalarType, DataType>, 9> types = {{{torch::kUInt8, DataType::u8},
                                                                          {torch::kInt8, DataType::i8},
                                                                          {torch::kInt32, DataType::i32},
                                                                          {torch::kInt64, DataType::i64},
                                                                          {torch::kFloat16, DataType::f16},
                                                                          {torch::kBFloat16, DataType::bf16},
                                                                          {torch::kFloat32, DataType::f32},
                                                                          {torch::kFloat64, DataType::f64},
                                                                          {torch::kBool, DataType::boolean}}};

std::optional<DataType> find_data_type(torch::ScalarType type) {
  for (const auto& [scalar_type, data_type] : types) {
    if (scalar_type == type) return data_type;
  }
  return std::nullopt;
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

torch::ScalarType scalar_type_of(DataType type) {
  return std::ranges::find(types, type, &std::pair<torch::ScalarType, DataType>::second)->first;
}

void check_on_cpu(const torch::Tensor& tensor, std::string_view name) {
  if (tensor.device().is_cpu()) return;
  throw UsageError(
      fmt::format("tensor '{}' is on {}, but this version of fedrun communicates CPU tensors only: move the model to "
                  "session.device()",
                  name, tensor.device().str()));
}

Buffer buffer_of(const torch::Tensor& tensor, std::string_view name) {
  check_on_cpu(tensor, name);
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
