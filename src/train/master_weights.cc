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
    remember(masters_.emplace_back(Master{i, weights}));
    master_of.emplace(parameter.unsafeGetTensorImpl(), weights);
  }
  for (auto& group : optimizer.param_groups()) {
    for (torch::Tensor& parameter : group.params()) {
      const auto master = master_of.find(parameter.unsafeGetTensorImpl());
      if (master != master_of.end()) parameter = master->second;
    }
  }
}

const torch::Tensor& MasterWeights::parameter_of(const Master& master) const {
  return reducer_.parameters()[master.parameter].tensor;
}

void MasterWeights::remember(Master& master) const {
  const torch::Tensor& parameter = parameter_of(master);
  master.data = parameter.const_data_ptr();
  master.version = parameter._version();
}

// Elements that still are the master's, rounded, keep what rounding has left out.
void MasterWeights::follow_parameter(Master& master) const {
  const torch::NoGradGuard no_grad;
  const torch::Tensor& parameter = parameter_of(master);
  if (parameter.const_data_ptr() == master.data && parameter._version() == master.version) return;
  const torch::Tensor is_same = parameter == master.weights.to(parameter.scalar_type());
  master.weights.copy_(torch::where(is_same, master.weights, parameter.to(torch::kFloat32)));
  remember(master);
}

void MasterWeights::prepare() {
  for (Master& master : masters_) {
    follow_parameter(master);
    master.weights.mutable_grad() = reducer_.widened_gradient(master.parameter);
  }
}

void MasterWeights::write_back() {
  const torch::NoGradGuard no_grad;
  for (Master& master : masters_) {
    torch::Tensor rounded = parameter_of(master);
    rounded.copy_(master.weights);
    remember(master);
  }
}

NamedTensors MasterWeights::named() const {
  NamedTensors tensors;
  for (const Master& master : masters_) {
    tensors.emplace_back(reducer_.parameters()[master.parameter].name, master.weights);
  }
  return tensors;
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
