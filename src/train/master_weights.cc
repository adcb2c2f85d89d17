#include <fedrun/core/error.h>
#include <fedrun/train/master_weights.h>

#include <unordered_map>

namespace fedrun {

MasterWeights::MasterWeights(torch::optim::Optimizer& optimizer, GradientReducer& reducer) : reducer_(reducer) {
  if (!optimizer.state().empty()) {
    throw UsageError("master_weights: the optimizer has stepped before, without them: wrap it when it is new");
  }
  std::unordered_map<const void*, torch::Tensor> master_of;
  for (std::size_t i = 0; i < reducer.parameters().size(); ++i) {
    const torch::Tensor& parameter = reducer.parameters()[i].tensor;
    if (!reducer.is_widened(i)) continue;
    const torch::Tensor weights = parameter.detach().to(torch::kFloat32).set_requires_grad(true);
    masters_.push_back({i, weights});
    master_of.emplace(parameter.unsafeGetTensorImpl(), weights);
  }
  for (auto& group : optimizer.param_groups()) {
    for (torch::Tensor& parameter : group.params()) {
      const auto master = master_of.find(parameter.unsafeGetTensorImpl());
      if (master != master_of.end()) parameter = master->second;
    }
  }
}

void MasterWeights::prepare() {
  for (const auto& [parameter, weights] : masters_) weights.mutable_grad() = reducer_.widened_gradient(parameter);
}

void MasterWeights::write_back() {
  const torch::NoGradGuard no_grad;
  for (const auto& [parameter, weights] : masters_) {
    torch::Tensor rounded = reducer_.parameters()[parameter].tensor;
    rounded.copy_(weights);
  }
}

std::vector<torch::Tensor> MasterWeights::stepped() const {
  std::vector<torch::Tensor> tensors;
  auto master = masters_.begin();
  for (std::size_t i = 0; i < reducer_.parameters().size(); ++i) {
    const bool has_master = master != masters_.end() && master->parameter == i;
    tensors.push_back(has_master ? (master++)->weights : reducer_.parameters()[i].tensor);
  }
  return tensors;
}

}  // namespace fedrun
