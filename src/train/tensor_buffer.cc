#include <fedrun/core/error.h>
#include <fedrun/train/device_stream.h>
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

constexpr std::string_view known_devices = "only those on the CPU or a CUDA GPU can be communicated; pass tensor.cpu()";

bool has_known_device(const torch::Tensor& tensor) { return tensor.device().is_cpu() || tensor.device().is_cuda(); }

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

Buffer buffer_in(void* data, std::size_t elements, DataType type, torch::Device device) {
  if (device.is_cpu()) return {data, elements, type};
  return {data, elements, type, Device::cuda, handle_of(current_stream(device)), device.index()};
}

Buffer buffer_of(const torch::Tensor& tensor, std::string_view name) {
  if (!has_known_device(tensor)) {
    throw UsageError(fmt::format("tensor '{}' is on {}: {}", name, tensor.device().str(), known_devices));
  }
  if (!tensor.is_contiguous()) {
    throw UsageError(fmt::format("tensor '{}' is not contiguous: pass tensor.contiguous()", name));
  }
  return buffer_in(tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()), data_type_of_tensor(tensor, name),
                   tensor.device());
}

void check_device(const Communicator& group, const torch::Tensor& parameter, std::string_view name) {
  if (parameter.device().is_cpu()) return;
  const std::optional<int> gpu = group.gpu();
  if (has_known_device(parameter) && gpu == parameter.device().index()) return;
  throw UsageError(
      fmt::format("parameter '{}' is on {}, and this rank reduces elements of the CPU{}: move the model to "
                  "session.device()",
                  name, parameter.device().str(),
                  gpu ? fmt::format(" and of cuda:{}", *gpu) : " only, because the run uses no GPUs"));
}

Memory allocate_on(torch::Device device, std::size_t bytes, Communicator& group, Allocation allocation) {
  if (allocation == Allocation::by_group) return group.allocate(bytes, device.is_cpu() ? Device::cpu : Device::cuda);
  if (device.is_cpu()) return allocate_on_heap(bytes);
  auto elements = torch::zeros(static_cast<std::int64_t>(bytes), torch::dtype(torch::kUInt8).device(device));
  void* const data = elements.data_ptr();
  return Memory(data, bytes, [kept = std::move(elements)]() mutable { kept.reset(); });
}

torch::Tensor pack(const torch::Tensor& tensor, std::string_view operation) {
  if (!tensor.defined()) throw UsageError(fmt::format("{}: the tensor is undefined: give it a value first", operation));
  if (tensor.layout() != torch::kStrided) {
    throw UsageError(fmt::format("{}: the tensor is sparse: pass tensor.to_dense()", operation));
  }
  if (!has_known_device(tensor)) {
    throw UsageError(fmt::format("{}: the tensor is on {}: {}", operation, tensor.device().str(), known_devices));
  }
  if (!find_data_type(tensor.scalar_type())) {
    throw UsageError(fmt::format("{}: the tensor has type {}, which cannot be communicated: {}", operation,
                                 torch::toString(tensor.scalar_type()), conversion_of(tensor.scalar_type())));
  }
  return tensor.detach().resolve_neg().contiguous();
}

std::string describe_tensor(std::string_view name, const torch::Tensor& tensor) {
  return fmt::format("{} {}[{}]{}", name, to_string(data_type_of_tensor(tensor, name)), fmt::join(tensor.sizes(), ", "),
                     tensor.device().is_cpu() ? "" : " on a GPU");
}

}  // namespace fedrun
