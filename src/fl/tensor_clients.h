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
  torch::Tensor mean;  // both of a shape that fits to the inputs
  torch::Tensor deviation;
};

// One mean and deviation for each channel of images.
Normalisation by_channel(const std::vector<float>& mean, const std::vector<float>& deviation);

// The mean and, with 0.001 added, the deviation that each single input has over all samples, as FedProx prepares MNIST.
Normalisation by_feature(const Samples& samples);

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

  // What a client trains on, normalised.
  Samples of_client(std::size_t client) const { return gather(train_.samples_of(client)); }

  // The same batch by batch: which samples the client has, in an order that the numbers draw; some of them, normalised;
  // and the same as the first rows of `batch`, made for at least so many. One may say which samples are wanted next.
  std::vector<data::SampleIndex> shuffled(std::size_t client, KeyedRandom random) const;
  Samples gather(std::span<const data::SampleIndex> indices) const;
  void gather(std::span<const data::SampleIndex> indices, const Samples& batch) const;
  void prefetch(std::span<const data::SampleIndex> indices) const;
  Samples make_batch(std::size_t size) const;

  // All samples of all clients, or all test samples, in a fixed order: so many, and some of them, normalised.
  std::size_t count(Split split) const;
  Samples range(Split split, std::size_t first, std::size_t count) const;

  std::vector<std::int64_t> sample_shape() const { return all_.inputs.sizes().slice(1).vec(); }

 private:
  torch::Tensor normalised(const torch::Tensor& inputs) const;

  Samples all_;
  data::Partition train_;
  Samples test_;
  std::int64_t elements_per_sample_ = 0;
  // An input becomes input · scale + shift; one number each for every element of a sample. Undefined where nothing is
  // to be done.
  torch::Tensor scale_;
  torch::Tensor shift_;
};

}  // namespace fedrun::fl
