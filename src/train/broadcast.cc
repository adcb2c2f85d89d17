#include <fedrun/train/agreement.h>
#include <fedrun/train/broadcast.h>
#include <fedrun/train/tensor_buffer.h>

namespace fedrun {

void broadcast_tensors(Communicator& group, const std::vector<std::pair<std::string, torch::Tensor>>& tensors,
                       const BroadcastOptions& options) {
  std::vector<std::string> descriptions;
  for (const auto& [name, tensor] : tensors) descriptions.push_back(describe_tensor(name, tensor));
  check_agreement(group, "broadcast: the tensors", descriptions);

  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    const torch::Tensor contiguous = tensor.contiguous();
    group.broadcast(buffer_of(contiguous, name), options);
    if (!contiguous.is_same(tensor)) tensor.copy_(contiguous);
  }
}

void broadcast_parameters(Communicator& group, const torch::nn::Module& module, const BroadcastOptions& options) {
  std::vector<std::pair<std::string, torch::Tensor>> tensors;
  for (const auto& parameter : module.named_parameters()) tensors.emplace_back(parameter.key(), parameter.value());
  for (const auto& buffer : module.named_buffers()) tensors.emplace_back(buffer.key(), buffer.value());
  broadcast_tensors(group, tensors, options);
}

}  // namespace fedrun
