#include <fedrun/core/error.h>
#include <fedrun/fl/flat_model.h>
#include <fmt/format.h>

#include <string>

namespace fedrun::fl {
namespace {

void check_parameters(const torch::nn::Module& module) {
  for (const auto& parameter : module.named_parameters()) {
    if (parameter.value().scalar_type() != torch::kFloat32 || !parameter.value().device().is_cpu()) {
      throw UsageError(fmt::format("parameter '{}' is {} on {}: federated averaging takes f32 on the CPU",
                                   parameter.key(), torch::toString(parameter.value().scalar_type()),
                                   parameter.value().device().str()));
    }
  }
  if (module.parameters().empty()) throw UsageError("the model has no parameters: there is nothing to average");
}

std::size_t parameter_bytes(const torch::nn::Module& module) {
  check_parameters(module);
  std::size_t bytes = 0;
  for (const torch::Tensor& parameter : module.parameters()) bytes += static_cast<std::size_t>(parameter.nbytes());
  return bytes;
}

// What is averaged of a model besides its parameters.
std::vector<torch::Tensor> float_buffers(const torch::nn::Module& module) {
  std::vector<torch::Tensor> buffers;
  for (const torch::Tensor& buffer : module.buffers()) {
    if (buffer.scalar_type() == torch::kFloat32) buffers.push_back(buffer);
  }
  return buffers;
}

}  // namespace

FlatModel::FlatModel(torch::nn::Module& module, Communicator& group)
    : parameters_(module.parameters()), memory_(group.allocate(parameter_bytes(module))) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> parts = parameters_;
  for (const torch::Tensor& buffer : float_buffers(module)) parts.push_back(buffer);
  std::vector<torch::Tensor> flattened;
  for (const torch::Tensor& part : parts) flattened.push_back(part.detach().flatten());
  state_ = torch::cat(flattened);

  const auto weight_count = static_cast<std::int64_t>(memory_.bytes() / sizeof(float));
  weights_ = state_.narrow(0, 0, weight_count);
  buffers_ = state_.narrow(0, weight_count, state_.numel() - weight_count);
  gradients_ = torch::from_blob(memory_.data(), {weight_count}, torch::kFloat32);
  weights_.mutable_grad() = gradients_;

  std::int64_t first = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t count = parts[i].numel();
    parts[i].set_data(state_.narrow(0, first, count).view(parts[i].sizes()));
    if (i < parameters_.size()) {
      // Not a view in Torch's sense, which zero_grad() could not detach.
      gradient_views_.push_back(
          torch::from_blob(gradients_.data_ptr<float>() + first, parts[i].sizes(), torch::kFloat32));
      parameters_[i].mutable_grad() = gradient_views_.back();
    }
    first += count;
  }
}

void FlatModel::release_gradients() {
  for (torch::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

void FlatModel::collect_gradients() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    torch::Tensor& gradient = parameters_[i].mutable_grad();
    if (gradient.defined() && gradient.is_same(gradient_views_[i])) continue;
    if (gradient.defined()) {
      gradient_views_[i].copy_(gradient);
    } else {
      gradient_views_[i].zero_();
    }
    gradient = gradient_views_[i];
  }
}

}  // namespace fedrun::fl
