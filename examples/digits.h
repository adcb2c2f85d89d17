// What the examples that learn digits share: their images, and how well a model knows them.
#pragma once

#include <fedrun/fedrun.h>

#include <string>

namespace digits {

struct Sets {
  fedrun::data::ImageSet train;
  fedrun::data::ImageSet test;
};

inline Sets load_sets(const std::string& data_dir) {
  using namespace fedrun::data;
  if (!data_dir.empty()) return {load_mnist(data_dir, MnistSplit::train), load_mnist(data_dir, MnistSplit::test)};
  return {synthetic_digits({.count = 20'000, .seed = 1}), synthetic_digits({.count = 4'000, .seed = 2})};
}

// Mean and standard deviation of MNIST's pixels; the drawn digits are close enough.
inline fedrun::data::ImageDataset normalised(const fedrun::data::ImageSet& set) {
  return fedrun::data::ImageDataset(set, {.mean = {0.1307F}, .deviation = {0.3081F}});
}

inline void add_batch(fedrun::Meter& meter, const torch::Tensor& output, const torch::Tensor& target, double loss) {
  const auto count = static_cast<double>(target.size(0));
  meter.add("loss", loss, count);
  meter.add("accuracy", output.argmax(1).eq(target).sum().item<double>() / count, count);
}

inline fedrun::Meter evaluate(fedrun::Session& session, fedrun::models::ConvNet& model,
                              const fedrun::data::ImageSet& set) {
  fedrun::Communicator& world = session.world();
  const torch::NoGradGuard no_grad;
  model->eval();
  // Each image once, on one rank, so that the accuracy is exact.
  auto loader =
      torch::data::make_data_loader(normalised(set),
                                    fedrun::DistributedSampler(set.count(), world.rank(), world.size(),
                                                               {.shuffle = false, .tail = fedrun::Tail::uneven}),
                                    500);
  fedrun::Meter meter;
  for (auto& batch : *loader) {
    const auto target = batch.target.to(session.device());
    const auto output = model->forward(batch.data.to(session.device()));
    add_batch(meter, output, target, torch::cross_entropy_loss(output, target).item<double>());
  }
  model->train();
  return meter.over_ranks(world);
}

// BatchNorm's running statistics are each rank's own; their mean describes the images of all ranks.
inline void average_running_statistics(fedrun::Communicator& world, const torch::nn::Module& model) {
  for (auto& buffer : model.buffers()) {
    if (buffer.is_floating_point()) fedrun::allreduce_(world, buffer);
  }
}

}  // namespace digits
