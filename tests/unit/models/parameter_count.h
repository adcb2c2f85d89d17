// Counts what a model learns, to hold it against the published number.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace fedrun::models {

inline std::int64_t parameter_count(const torch::nn::Module& model) {
  std::int64_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.numel();
  return count;
}

}  // namespace fedrun::models
