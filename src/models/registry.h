// Models by name, so that programs can take one as a flag.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::models {

struct ModelOptions {
  std::optional<std::int64_t> classes{};                    // none: what the model usually has
  std::optional<std::vector<std::int64_t>> sample_shape{};  // none: what the model usually takes, as most always do
};

// Some model, whatever its type, and what it takes and gives. Copies share the module. What optimizers and
// broadcast_parameters want of it comes from the module: model->named_parameters(), *model.
class Model {
 public:
  Model(torch::nn::AnyModule module, std::vector<std::int64_t> sample_shape, std::int64_t classes)
      : module_(std::move(module)), sample_shape_(std::move(sample_shape)), classes_(classes) {}

  // (N, sample_shape…) → (N, classes).
  torch::Tensor forward(const torch::Tensor& batch) { return module_.forward(batch); }

  torch::nn::Module& operator*() const { return *module_.ptr(); }
  torch::nn::Module* operator->() const { return module_.ptr().get(); }

  const std::vector<std::int64_t>& sample_shape() const { return sample_shape_; }  // of images: channels, height, width
  std::int64_t classes() const { return classes_; }

 private:
  torch::nn::AnyModule module_;
  std::vector<std::int64_t> sample_shape_;
  std::int64_t classes_;
};

// Throws UsageError that lists the known names for any other, and for samples that the model cannot take.
Model make_model(std::string_view name, const ModelOptions& options = {});

std::vector<std::string> model_names();

}  // namespace fedrun::models
