// The bridge between Torch's tensors and the collectives, which know only memory and types.
#pragma once

#include <fedrun/collectives/types.h>
#include <torch/torch.h>

#include <string>
#include <string_view>

namespace fedrun {

// Throws UsageError that names the tensor for types that the collectives do not have.
DataType data_type_of_tensor(const torch::Tensor& tensor, std::string_view name);

torch::ScalarType scalar_type_of(DataType type);

// Throws UsageError that names the tensor if it is anywhere else.
void check_on_cpu(const torch::Tensor& tensor, std::string_view name);

// The memory of a contiguous CPU tensor; throws UsageError that names any other.
Buffer buffer_of(const torch::Tensor& tensor, std::string_view name);

// What an operation can work on: the elements of any CPU tensor in one piece, outside autograd. Shares the tensor's
// memory where that is contiguous, and is a copy otherwise. Throws UsageError that names the operation.
torch::Tensor pack(const torch::Tensor& tensor, std::string_view operation);

// "weight f32[16, 1, 5, 5]", for comparing ranks and for error messages.
std::string describe_tensor(std::string_view name, const torch::Tensor& tensor);

}  // namespace fedrun
