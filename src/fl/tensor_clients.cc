#include <fedrun/core/error.h>
#include <fedrun/data/distributions.h>
#include <fedrun/fl/row_kernels.h>
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
  return {.mean = mean.to(torch::kFloat32), .deviation = variance.sqrt().add_(0.001 * scale).to(torch::kFloat32)};
}

TensorClients::TensorClients(Samples all, data::Partition train, Samples test, const Normalisation& normalisation)
    : all_(std::move(all)), train_(std::move(train)), test_(std::move(test)), normalisation_(normalisation) {
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
  all_ = {all_.inputs.contiguous(), all_.targets.contiguous()};
  elements_per_sample_ = c10::multiply_integers(sample_shape());
  const bool has_pixels = all_.inputs.scalar_type() == torch::kUInt8;
  if (!has_pixels && !normalisation.mean.defined() && !normalisation.deviation.defined()) return;
  scale_ = torch::full(sample_shape(), has_pixels ? 1.0 / 255 : 1.0);
  shift_ = torch::zeros(sample_shape());
  if (normalisation.mean.defined()) shift_.sub_(normalisation.mean);
  if (normalisation.deviation.defined()) {
    scale_.div_(normalisation.deviation);
    shift_.div_(normalisation.deviation);
  }
}

TensorClients::TensorClients(const Samples& all, const data::SplitPartition& clients,
                             const Normalisation& normalisation)
    : TensorClients(all, clients.train, select(all, clients.test.samples_of_all()), normalisation) {
  test_of_clients_ = clients.test;
}

torch::Tensor TensorClients::normalised(const torch::Tensor& inputs) const {
  const torch::Tensor scaled =
      scale_.defined() ? inputs.to(torch::kFloat32, false, true).mul_(scale_).add_(shift_) : inputs;
  return normalisation_.is_by_sample ? standardised(scaled) : scaled;
}

Samples TensorClients::of_client(std::size_t client, Split split) const {
  if (split == Split::train) return gather(train_.samples_of(client));
  return test_of_clients_ ? gather(test_of_clients_->samples_of(client)) : range(Split::test, 0, 0);
}

Samples TensorClients::make_batch(std::size_t size) const {
  std::vector<std::int64_t> shape = all_.inputs.sizes().vec();
  shape[0] = to_signed(size);
  return {torch::empty(shape), torch::empty(shape[0], torch::kInt64)};
}

std::vector<data::SampleIndex> TensorClients::shuffled(std::size_t client, KeyedRandom random) const {
  const auto samples = train_.samples_of(client);
  std::vector<data::SampleIndex> order(samples.begin(), samples.end());
  data::shuffle(std::span(order), random);
  return order;
}

Samples TensorClients::gather(std::span<const data::SampleIndex> indices) const {
  const Samples batch = make_batch(indices.size());
  gather(indices, batch);
  return batch;
}

// Pixels are picked and normalised in one go, because for small models that is much of a round.
void TensorClients::gather(std::span<const data::SampleIndex> indices, const Samples& batch) const {
  const auto* labels = all_.targets.const_data_ptr<std::int64_t>();
  auto* targets = batch.targets.data_ptr<std::int64_t>();
  for (const data::SampleIndex index : indices) *targets++ = labels[index];

  auto* values = batch.inputs.data_ptr<float>();
  const auto elements = static_cast<std::size_t>(elements_per_sample_);
  const bool has_pixels = all_.inputs.scalar_type() == torch::kUInt8;
  if (has_pixels) {
    const auto* pixels = all_.inputs.const_data_ptr<std::uint8_t>();
    const auto* scale = scale_.const_data_ptr<float>();
    const auto* shift = shift_.const_data_ptr<float>();
    for (const data::SampleIndex index : indices) {
      scale_pixels(pixels + index * elements, elements, scale, shift, values);
      values += elements;
    }
  } else {
    const auto* inputs = all_.inputs.const_data_ptr<float>();
    for (const data::SampleIndex index : indices) values = std::copy_n(inputs + index * elements, elements, values);
  }
  const bool is_scaled = has_pixels || !scale_.defined();
  if (is_scaled && !normalisation_.is_by_sample) return;
  const torch::Tensor rows = batch.inputs.narrow(0, 0, to_signed(indices.size()));
  if (!is_scaled) rows.mul_(scale_).add_(shift_);
  if (normalisation_.is_by_sample) rows.copy_(standardised(rows));
}

// Samples of a client lie anywhere, so that each first access would wait for memory.
void TensorClients::prefetch(std::span<const data::SampleIndex> indices) const {
  constexpr std::size_t cache_line = 64;
  const auto bytes = static_cast<std::size_t>(elements_per_sample_) * all_.inputs.element_size();
  const auto* data = static_cast<const std::byte*>(all_.inputs.const_data_ptr());
  for (const data::SampleIndex index : indices) {
    for (std::size_t byte = 0; byte < bytes; byte += cache_line) __builtin_prefetch(data + index * bytes + byte);
  }
}

std::size_t TensorClients::count(Split split) const {
  return split == Split::train ? train_.samples() : static_cast<std::size_t>(test_.targets.size(0));
}

Samples TensorClients::range(Split split, std::size_t first, std::size_t count) const {
  if (split == Split::train) return gather(train_.samples_of_all().subspan(first, count));
  return {normalised(test_.inputs.narrow(0, to_signed(first), to_signed(count))),
          test_.targets.narrow(0, to_signed(first), to_signed(count))};
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
