#include <fedrun/models/chain.h>

namespace fedrun::models {

std::shared_ptr<torch::nn::Module> ChainImpl::clone(const std::optional<torch::Device>& device) const {
  auto copy = std::make_shared<ChainImpl>();
  copy->append_clones(*this, device);
  return copy;
}

void ChainImpl::append_clones(const ChainImpl& other, const std::optional<torch::Device>& device) {
  const std::vector<std::string> names = other.named_children().keys();
  std::size_t index = 0;
  for (const torch::nn::AnyModule& module : other) push_back(names[index++], module.clone(device));
}

}  // namespace fedrun::models
