#include <fedrun/core/error.h>
#include <fedrun/fl/tensor_clients.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace fedrun::fl {
namespace {

std::int64_t to_signed(std::size_t count) { return static_cast<std::int64_t>(count); }

torch::Tensor targets_of(const std::vector<std::uint8_t>& labels) {
  torch::Tensor targets = torch::empty({to_signed(labels.size())}, torch::kInt64);
  std::copy(labels.begin(), labels.end(), targets.data_ptr<std::int64_t>());
  return targets;
}

// An image of one colour has a deviation of 0; the least is what TensorFlow takes for images of numbers up to 255.
torch::Tensor standardised(const torch::Tensor& inputs) {
  const torch::Tensor flat = inputs.flatten(1);
  const double least = 1 / (255 * std::sqrt(static_cast<double>(flat.size(1))));
  const torch::Tensor deviation = flat.std(1, /*unbiased=*/false, /*keepdim=*/true).clamp_min_(least);
  return ((flat - flat.mean(1, /*keepdim=*/true)) / deviation).view_as(inputs);
}

Samples select(const Samples& all, std::span<const data::SampleIndex> indices) {
  torch::Tensor rows = torch::empty({to_signed(indices.size())}, torch::kInt64);
  std::copy(indices.begin(), indices.end(), rows.data_ptr<std::int64_t>());
  return {all.inputs.index_select(0, rows), all.targets.index_select(0, rows)};
}

}  // namespace

Samples samples_of(const data::ImageSet& set) {
  torch::Tensor images = torch::empty(
      {to_signed(set.count()), to_signed(set.channels), to_signed(set.rows), to_signed(set.columns)}, torch::kUInt8);
  if (!set.pixels.empty()) std::memcpy(images.data_ptr<std::uint8_t>(), set.pixels.data(), set.pixels.size());
  return {images, targets_of(set.labels)};
}

Samples samples_of(const data::FeatureSet& set) {
  std::vector<std::int64_t> shape = {to_signed(set.count())};
  shape.insert(shape.end(), set.sample_shape.begin(), set.sample_shape.end());
  torch::Tensor inputs = torch::empty(shape);
  std::copy(set.values.begin(), set.values.end(), inputs.data_ptr<float>());
  return {inputs, targets_of(set.labels)};
}

Samples join(const Samples& first, const Samples& second) {
  return {torch::cat({first.inputs, second.inputs}), torch::cat({first.targets, second.targets})};
}

Normalisation by_channel(const std::vector<float>& mean, const std::vector<float>& deviation) {
  return {.mean = torch::tensor(mean).view({-1, 1, 1}), .deviation = torch::tensor(deviation).view({-1, 1, 1})};
}

Normalisation by_sample() { return {.is_by_sample = true}; }

// Row by row, because all samples as doubles would be eight times the memory of the pixels.
Normalisation by_feature(const Samples& samples) {
  constexpr std::int64_t rows_at_once = 1000;
  const double scale = samples.inputs.scalar_type() == torch::kUInt8 ? 1.0 / 255 : 1;
  const std::vector<std::int64_t> shape = samples.inputs.sizes().slice(1).vec();
  torch::Tensor sum = torch::zeros(shape, torch::kFloat64);
  torch::Tensor squares = torch::zeros(shape, torch::kFloat64);
  for (const torch::Tensor& rows : samples.inputs.split(rows_at_once)) {
    const torch::Tensor values = rows.to(torch::kFloat64).mul_(scale);
    sum += values.sum(0);
    squares += values.square().sum(0);
  }
  const auto count = static_cast<double>(samples.inputs.size(0));
  const torch::Tensor mean = sum / count;
  const torch::Tensor variance = (squares / count - mean.square()).clamp_min(0);
  return {.mean = mean.to(torch::kFloat32), .deviation = variance.sqrt().add_(0.001).to(torch::kFloat32)};
}

TensorClients::TensorClients(Samples all, data::Partition train, Samples test, Normalisation normalisation)
    : all_(std::move(all)), train_(std::move(train)), test_(std::move(test)), normalisation_(std::move(normalisation)) {
  for (const Samples& samples : {all_, test_}) {
    if (samples.inputs.size(0) != samples.targets.size(0)) {
      throw UsageError(
          fmt::format("{} inputs do not go with {} targets", samples.inputs.size(0), samples.targets.size(0)));
    }
  }
  const auto indices = train_.samples_of_all();
  const auto largest = std::max_element(indices.begin(), indices.end());
  if (largest != indices.end() && to_signed(*largest) >= all_.inputs.size(0)) {
    throw UsageError(
        fmt::format("the partition has sample {}, but there are {} samples", *largest, all_.inputs.size(0)));
  }
}

TensorClients::TensorClients(const Samples& all, const data::SplitPartition& clients, Normalisation normalisation)
    : TensorClients(all, clients.train, select(all, clients.test.samples_of_all()), std::move(normalisation)) {
  test_of_clients_ = clients.test;
}

// Bytes are picked before they come here: a quarter of the memory to move.
Samples TensorClients::normalised(Samples samples) const {
  if (samples.inputs.scalar_type() == torch::kUInt8) {
    samples.inputs = samples.inputs.to(torch::kFloat32).mul_(1.0 / 255);
  }
  if (normalisation_.is_by_sample) samples.inputs = standardised(samples.inputs);
  if (normalisation_.mean.defined()) samples.inputs = samples.inputs - normalisation_.mean;
  if (normalisation_.deviation.defined()) samples.inputs = samples.inputs / normalisation_.deviation;
  return samples;
}

Samples TensorClients::of_client(std::size_t client, Split split) const {
  if (split == Split::train) return normalised(select(all_, train_.samples_of(client)));
  if (!test_of_clients_) return range(Split::test, 0, 0);
  return normalised(select(all_, test_of_clients_->samples_of(client)));
}

std::size_t TensorClients::count(Split split) const {
  return split == Split::train ? train_.samples() : static_cast<std::size_t>(test_.targets.size(0));
}

Samples TensorClients::range(Split split, std::size_t first, std::size_t count) const {
  if (split == Split::train) return normalised(select(all_, train_.samples_of_all().subspan(first, count)));
  return normalised({test_.inputs.narrow(0, to_signed(first), to_signed(count)),
                     test_.targets.narrow(0, to_signed(first), to_signed(count))});
}

TensorClients TensorClients::with_few_samples(std::size_t most) const {
  const auto cut = [&](const data::Partition& partition) {
    data::Partition few;
    for (std::size_t client = 0; client < partition.clients(); ++client) {
      const auto samples = partition.samples_of(client);
      few.append(samples.first(std::min(most, samples.size())));
    }
    return few;
  };
  if (test_of_clients_) return TensorClients(all_, {cut(train_), cut(*test_of_clients_)}, normalisation_);
  const std::int64_t test_count = std::min(to_signed(most), test_.targets.size(0));
  return TensorClients(all_, cut(train_),
                       {test_.inputs.narrow(0, 0, test_count), test_.targets.narrow(0, 0, test_count)}, normalisation_);
}

}  // namespace fedrun::fl
