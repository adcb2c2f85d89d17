#include <fedrun/core/error.h>
#include <fedrun/data/image_dataset.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace fedrun::data {
namespace {

std::int64_t to_signed(size_t count) { return static_cast<std::int64_t>(count); }

void check(const ImageSet& set) {
  if (set.pixels.size() != set.count() * set.image_bytes()) {
    throw UsageError(fmt::format("{}: {} bytes of pixels do not make {} images of {} × {} × {}", set.name,
                                 set.pixels.size(), set.count(), set.channels, set.rows, set.columns));
  }
  const auto largest = std::max_element(set.labels.begin(), set.labels.end());
  if (largest != set.labels.end() && *largest >= set.classes) {
    throw UsageError(fmt::format("{}: image {} has the label {}, but there are {} classes", set.name,
                                 largest - set.labels.begin(), *largest, set.classes));
  }
}

torch::Tensor per_channel(const std::vector<float>& values, const ImageSet& set, std::string_view what) {
  if (values.empty()) return {};
  if (values.size() != set.channels) {
    throw UsageError(fmt::format("{}: {} values of {} for {} channels: give one per channel, or none", set.name,
                                 values.size(), what, set.channels));
  }
  return torch::tensor(values).reshape({to_signed(set.channels), 1, 1});
}

void check_deviation(const std::vector<float>& deviation, const ImageSet& set) {
  for (const float value : deviation) {
    if (!(value > 0)) throw UsageError(fmt::format("{}: a deviation of {} cannot divide pixels", set.name, value));
  }
}

}  // namespace

ImageDataset::ImageDataset(const ImageSet& set, const ImageDatasetOptions& options) {
  check(set);
  check_deviation(options.deviation, set);
  mean_ = per_channel(options.mean, set, "mean");
  deviation_ = per_channel(options.deviation, set, "deviation");

  images_ = torch::empty({to_signed(set.count()), to_signed(set.channels), to_signed(set.rows), to_signed(set.columns)},
                         torch::kUInt8);
  if (!set.pixels.empty()) std::memcpy(images_.data_ptr<std::uint8_t>(), set.pixels.data(), set.pixels.size());
  labels_ = torch::empty({to_signed(set.count())}, torch::kInt64);
  std::copy(set.labels.begin(), set.labels.end(), labels_.data_ptr<std::int64_t>());
}

torch::data::Example<> ImageDataset::get_batch(c10::ArrayRef<size_t> indices) {
  const size_t count = static_cast<size_t>(labels_.size(0));
  torch::Tensor chosen = torch::empty({to_signed(indices.size())}, torch::kInt64);
  std::int64_t* next = chosen.data_ptr<std::int64_t>();
  for (const size_t index : indices) {
    if (index >= count) throw UsageError(fmt::format("image {} was asked for, but the data set has {}", index, count));
    *next++ = to_signed(index);
  }
  // Picked as bytes and converted afterwards: a quarter of the memory traffic of picking floats.
  torch::Tensor images = images_.index_select(0, chosen).to(torch::kFloat32).div_(255);
  if (mean_.defined()) images.sub_(mean_);
  if (deviation_.defined()) images.div_(deviation_);
  return {images, labels_.index_select(0, chosen)};
}

std::optional<size_t> ImageDataset::size() const { return static_cast<size_t>(labels_.size(0)); }

}  // namespace fedrun::data
