// Clients whose samples lie in the memory of every rank, as rows of two tensors.
#pragma once

#include <fedrun/core/keyed_random.h>
#include <fedrun/data/feature_set.h>
#include <fedrun/data/image_set.h>
#include <fedrun/data/partition.h>
#include <fedrun/fl/client_data.h>
#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fedrun::fl {

// One row each per sample.
struct Samples {
  torch::Tensor inputs;   // f32, or u8 where they are pixels
  torch::Tensor targets;  // i64, the number of a class
};

// Training sees (input - mean) / deviation, of which pixels are first divided by 255. Undefined: 0 and 1.
struct Normalisation {
  torch::Tensor mean{};  // both of a shape that fits to the inputs
  torch::Tensor deviation{};
  bool is_by_sample = false;  // each sample by the mean and deviation of its own numbers instead
};

// One mean and deviation for each channel of images.
Normalisation by_channel(const std::vector<float>& mean, const std::vector<float>& deviation);

// The mean and, with 0.001 added (of pixels: 0.001 of 255), the deviation that each single input has over all samples,
// as FedProx prepares MNIST.
Normalisation by_feature(const Samples& samples);

// Each sample by itself: to a mean of 0 and a deviation of 1 of its numbers, as TensorFlow standardises images.
Normalisation by_sample();

Samples samples_of(const data::ImageSet& set);
Samples samples_of(const data::FeatureSet& set);

// Two sets of the same shape as one, such as the two parts of MNIST.
Samples join(const Samples& first, const Samples& second);

enum class Split { train, test };

// Only reads itself after construction.
class TensorClients : public ClientData {
 public:
  // The test samples are those of nobody in particular. Throws UsageError where the parts do not fit together.
  TensorClients(Samples all, data::Partition train, Samples test, const Normalisation& normalisation = {});
  // Clients that have test samples of their own, which are tested on together.
  TensorClients(const Samples& all, const data::SplitPartition& clients, const Normalisation& normalisation = {});

  std::size_t clients() const override { return train_.clients(); }
  std::size_t train_samples(std::size_t client) const override { return train_.size_of(client); }

  // What a client trains on, or is tested on if it has test samples of its own, normalised.
  Samples of_client(std::size_t client, Split split = Split::train) const;

  // For training batch by batch: which samples the client has, in an order that the numbers draw; some of them,
  // normalised; and the same as the first rows of `batch`, made for at least so many. One may say which samples are
  // wanted next.
  std::vector<data::SampleIndex> shuffled(std::size_t client, KeyedRandom random) const;
  Samples gather(std::span<const data::SampleIndex> indices) const;
  void gather(std::span<const data::SampleIndex> indices, const Samples& batch) const;
  void prefetch(std::span<const data::SampleIndex> indices) const;
  Samples make_batch(std::size_t size) const;

  // All samples of all clients, or all test samples, in a fixed order: so many, and some of them, normalised.
  std::size_t count(Split split) const;
  Samples range(Split split, std::size_t first, std::size_t count) const;

  // The same clients with no more than so many samples each to train and to test on; so many in all where test samples
  // are nobody's. For a quick look whether everything works.
  TensorClients with_few_samples(std::size_t most) const;

  std::vector<std::int64_t> sample_shape() const { return all_.inputs.sizes().slice(1).vec(); }

 private:
  torch::Tensor normalised(const torch::Tensor& inputs) const;

  Samples all_;
  data::Partition train_;
  Samples test_;
  std::optional<data::Partition> test_of_clients_;  // whose samples they are, where they are somebody's
  Normalisation normalisation_;
  std::int64_t elements_per_sample_ = 0;
  // An input becomes input · scale + shift; one number each for every element of a sample. Undefined where nothing is
  // to be done.
  torch::Tensor scale_;
  torch::Tensor shift_;
};

}  // namespace fedrun::fl
