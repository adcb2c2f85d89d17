// Serves an ImageSet to torch::data::make_data_loader in whole batches, so that no transform has to stack examples.
#pragma once

#include <fedrun/data/image_set.h>
#include <torch/torch.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace fedrun::data {

// Pixels become (value / 255 - mean) / deviation.
struct ImageDatasetOptions {
  std::vector<float> mean{};       // one per channel; empty: 0
  std::vector<float> deviation{};  // one per channel; empty: 1
};

// Copies share the tensors and only read them, so a loader may give each of its worker threads a copy.
class ImageDataset : public torch::data::datasets::BatchDataset<ImageDataset, torch::data::Example<>> {
 public:
  // Throws UsageError when the set contradicts itself or the options do not fit its channels.
  explicit ImageDataset(const ImageSet& set, const ImageDatasetOptions& options = {});

  // Float images (batch, channels, rows, columns) and int64 labels (batch). Throws UsageError for an index beyond the
  // set.
  torch::data::Example<> get_batch(c10::ArrayRef<size_t> indices) override;

  std::optional<size_t> size() const override;

 private:
  torch::Tensor images_;     // uint8 (count, channels, rows, columns): a quarter of the memory of floats
  torch::Tensor labels_;     // int64 (count)
  torch::Tensor mean_;       // float (channels, 1, 1); undefined: 0
  torch::Tensor deviation_;  // float (channels, 1, 1); undefined: 1
};

}  // namespace fedrun::data
