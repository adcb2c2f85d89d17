#include <fedrun/core/error.h>
#include <fedrun/fl/flat_model.h>
#include <fedrun/train/gradient_bucket.h>
#include <fedrun/train/tensor_buffer.h>
#include <fmt/format.h>

#include <string>

namespace fedrun::fl {
namespace {

torch::Device device_of(const torch::nn::Module& module, const Communicator& group) {
  if (module.parameters().empty()) throw UsageError("the model has no parameters: there is nothing to average");
  const torch::Device device = module.parameters().front().device();
  for (const auto& parameter : module.named_parameters()) {
    check_device(group, parameter.value(), parameter.key());
    if (parameter.value().scalar_type() != torch::kFloat32 || parameter.value().device() != device) {
      throw UsageError(fmt::format("parameter '{}' is {} on {}: federated averaging takes f32, all of it on one device",
                                   parameter.key(), torch::toString(parameter.value().scalar_type()),
                                   parameter.value().device().str()));
    }
  }
  return device;
}

Memory allocate_for_parameters(const torch::nn::Module& module, Communicator& group) {
  const torch::Device device = device_of(module, group);
  std::size_t bytes = 0;
  for (const torch::Tensor& parameter : module.parameters()) bytes += static_cast<std::size_t>(parameter.nbytes());
  return allocate_on(device, bytes, group);
}

// What is averaged of a model besides its parameters.
bool is_averaged(const torch::Tensor& buffer) { return buffer.scalar_type() == torch::kFloat32; }

}  // namespace

FlatModel::FlatModel(torch::nn::Module& module, Communicator& group)
    : parameters_(module.parameters()), memory_(std::make_shared<Memory>(allocate_for_parameters(module, group))) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> parts = parameters_;
  for (const torch::Tensor& buffer : module.buffers()) {
    if (!buffer.defined()) continue;
    (is_averaged(buffer) ? parts : counters_).push_back(buffer);
  }
  for (const torch::Tensor& counter : counters_) first_counters_.push_back(counter.clone());
  std::vector<torch::Tensor> flattened;
  for (const torch::Tensor& part : parts) flattened.push_back(part.detach().flatten());
  state_ = torch::cat(flattened);

  const auto weight_count = static_cast<std::int64_t>(memory_->bytes() / sizeof(float));
  weights_ = state_.narrow(0, 0, weight_count);
  buffers_ = state_.narrow(0, weight_count, state_.numel() - weight_count);
  gradients_ = tensor_in(memory_, 0, static_cast<std::size_t>(weight_count), state_.options());
  weights_.mutable_grad() = gradients_;

  std::int64_t first = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t count = parts[i].numel();
    parts[i].set_data(state_.narrow(0, first, count).view(parts[i].sizes()));
    if (i < parameters_.size()) {
      // Not a view in Torch's sense, which zero_grad() could not detach.
      gradient_views_.push_back(tensor_like_in(memory_, static_cast<std::size_t>(first), parts[i]));
      parameters_[i].mutable_grad() = gradient_views_.back();
    }
    first += count;
  }
}

void FlatModel::reset_counters() {
  for (std::size_t i = 0; i < counters_.size(); ++i) counters_[i].copy_(first_counters_[i]);
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
