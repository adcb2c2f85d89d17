#include "fedavg_contender.h"

#include <fedrun/fl/client_assignment.h>
#include <fedrun/fl/federation.h>
#include <fedrun/sampler/client_sampler.h>
#include <fedrun/train/device_stream.h>

#include "tight_loop.h"

namespace fedrun::bench {
namespace {

class FederatedRounds : public FedavgContender {
 public:
  FederatedRounds(const FedavgWorkload& workload, const fedavg::Data& data, Communicator& world,
                  const FedavgPlaces& places)
      : groups_(world, {.count = places.groups}),
        trainer_(make_model(workload, data, places.device), data.clients, training_options(workload)),
        federation_(groups_, trainer_, data.clients, std::make_unique<fl::FedAvg>(),
                    {.clients_per_round = workload.clients_per_round}) {}

  void run(std::uint64_t) override { federation_.run_round(); }

 private:
  fl::RankGroups groups_;
  fl::ClassificationTrainer trainer_;
  fl::Federation federation_;
};

class TightRounds : public FedavgContender {
 public:
  TightRounds(const FedavgWorkload& workload, const fedavg::Data& data)
      : sampler_(workload.clients, workload.clients_per_round), loop_(settings_of(workload, data)) {
    for (std::size_t client = 0; client < workload.clients; ++client) {
      samples_.push_back(data.clients.of_client(client));
      const fl::Samples& samples = samples_.back();
      loop_.add_client({.inputs = samples.inputs.const_data_ptr<float>(),
                        .targets = samples.targets.const_data_ptr<std::int64_t>(),
                        .samples = static_cast<std::size_t>(samples.targets.size(0))});
    }
  }

  void run(std::uint64_t round) override { loop_.run(sampler_.clients_of_round(round), round); }

 private:
  static TightLoop::Settings settings_of(const FedavgWorkload& workload, const fedavg::Data& data) {
    return {.features = static_cast<std::size_t>(data.clients.range(fl::Split::train, 0, 1).inputs.numel()),
            .classes = static_cast<std::size_t>(data.classes),
            .batch_size = training_options(workload).batch_size,
            .lr = static_cast<float>(workload.lr)};
  }

  ClientSampler sampler_;
  std::vector<fl::Samples> samples_;  // by client
  TightLoop loop_;
};

// The least that training with autograd costs: forward, backward and step on the batches that this rank has in fedrun.
class IndependentBatches : public FedavgContender {
 public:
  IndependentBatches(const FedavgWorkload& workload, const fedavg::Data& data, const Communicator& world,
                     torch::Device device)
      : data_(data),
        world_(world),
        device_(device),
        sampler_(workload.clients, workload.clients_per_round),
        batch_size_(static_cast<std::int64_t>(training_options(workload).batch_size)),
        model_(make_model(workload, data, device)),
        optimizer_(model_->parameters(), torch::optim::SGDOptions(workload.lr)) {}

  void prepare(std::uint64_t round) override {
    const std::vector<std::size_t> chosen = sampler_.clients_of_round(round);
    std::vector<double> costs;
    for (const std::size_t client : chosen) costs.push_back(static_cast<double>(data_.clients.train_samples(client)));
    const auto assigned = fl::assign_by_cost(costs, static_cast<std::size_t>(world_.size()));
    batches_.clear();
    for (const std::size_t position : assigned[static_cast<std::size_t>(world_.rank())]) {
      const fl::Samples samples = data_.clients.of_client(chosen[position]);
      const auto inputs = samples.inputs.to(device_).split(batch_size_);
      const auto targets = samples.targets.to(device_).split(batch_size_);
      for (std::size_t i = 0; i < inputs.size(); ++i) batches_.push_back({inputs[i], targets[i]});
    }
  }

  void run(std::uint64_t) override {
    for (const fl::Samples& batch : batches_) {
      optimizer_.zero_grad();
      torch::cross_entropy_loss(model_.forward(batch.inputs), batch.targets).backward();
      optimizer_.step();
    }
    if (!device_.is_cpu()) current_stream(device_).synchronize();  // the host has only begun it
  }

 private:
  const fedavg::Data& data_;
  const Communicator& world_;
  torch::Device device_;
  ClientSampler sampler_;
  std::int64_t batch_size_;
  models::Model model_;
  torch::optim::SGD optimizer_;
  std::vector<fl::Samples> batches_;
};

}  // namespace

std::unique_ptr<FedavgContender> make_contender(FedavgSystem system, const FedavgWorkload& workload,
                                                const fedavg::Data& data, Communicator& world,
                                                const FedavgPlaces& places) {
  switch (system) {
    case FedavgSystem::fedrun:
      return std::make_unique<FederatedRounds>(workload, data, world, places);
    case FedavgSystem::independent:
      return std::make_unique<IndependentBatches>(workload, data, world, places.device);
    case FedavgSystem::tight:
      break;
  }
  return world.rank() == 0 ? std::make_unique<TightRounds>(workload, data) : nullptr;
}

}  // namespace fedrun::bench
