// The bridge between Torch's tensors and the collectives, which know only memory and types.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <torch/torch.h>

#include <string>
#include <string_view>

namespace fedrun {

// Throws UsageError that names the tensor for types that the collectives do not have.
DataType data_type_of_tensor(const torch::Tensor& tensor, std::string_view name);

torch::ScalarType scalar_type_of(DataType type);

// The memory of a contiguous tensor on the CPU or on a GPU, whose elements are ready when what this thread has put on
// its current stream is done; throws UsageError that names any other.
Buffer buffer_of(const torch::Tensor& tensor, std::string_view name);

// The same for memory that is not a tensor yet.
Buffer buffer_in(void* data, std::size_t elements, DataType type, torch::Device device);

// Throws UsageError that names the parameter unless the group can reduce what lies on its device: that is the CPU, or
// this rank's GPU.
void check_device(const Communicator& group, const torch::Tensor& parameter, std::string_view name);

// Zeroed memory on the device that the group reduces without copying it; collective over the group. Or, with no need of
// the other ranks, memory that the group may have to copy.
enum class Allocation { by_group, alone };
Memory allocate_on(torch::Device device, std::size_t bytes, Communicator& group,
                   Allocation allocation = Allocation::by_group);

// What an operation can work on: the elements of any tensor in one piece, outside autograd. Shares the tensor's memory
// where that is contiguous, and is a copy otherwise. Throws UsageError that names the operation.
torch::Tensor pack(const torch::Tensor& tensor, std::string_view operation);

// "weight f32[16, 1, 5, 5]", for comparing ranks and for error messages.
std::string describe_tensor(std::string_view name, const torch::Tensor& tensor);

}  // namespace fedrun
