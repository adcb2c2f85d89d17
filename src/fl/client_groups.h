// Hierarchical FedAvg: clients belong to groups, each of which averages among its own for some rounds, on one rank
// group, before what the groups have learnt is averaged like that of clients.
#pragma once

#include <fedrun/fl/averaging.h>
#include <fedrun/fl/client_data.h>
#include <fedrun/fl/model_trainer.h>
#include <fedrun/sampler/client_sampler.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace fedrun::fl {

// Deals the clients out at random into groups of equal size; to a Federation, each group is one client.
class ClientGroups : public ClientData {
 public:
  // Throws UsageError unless there are as many clients as groups, and a group. The clients must outlive it.
  ClientGroups(const ClientData& clients, std::size_t groups, std::uint64_t seed);

  std::size_t clients() const override { return samples_.size(); }
  std::size_t train_samples(std::size_t group) const override { return samples_[group]; }

  const ClientData& members() const { return members_; }
  std::size_t group_of(std::size_t client) const { return group_of_[client]; }

 private:
  const ClientData& members_;
  std::vector<std::size_t> group_of_;
  std::vector<std::size_t> samples_;  // of all clients of a group
};

struct GroupTrainerOptions {
  std::uint64_t inner_rounds = 1;
  FederationOptions members{};  // for the rounds inside the groups; clients_per_round are of all groups together
};

// Trains a group of clients: each rank of the rank group trains some of those that were chosen, and they average over
// the rank group's own links. A group none of whose clients finishes is left out, like a client that fails. Used by one
// thread; what it is given must outlive it.
class GroupTrainer : public ModelTrainer {
 public:
  // Throws UsageError for an algorithm or options that remember single clients, because a group of clients may train
  // on another rank group in each round.
  GroupTrainer(ModelTrainer& trainer, const ClientGroups& groups, std::unique_ptr<Algorithm> inner_algorithm,
               const GroupTrainerOptions& options);

  torch::nn::Module& model() override { return trainer_.model(); }
  LocalResult train(LocalTask& task) override;
  bool is_same_on_any_group() const override { return options_.members.sums == SumOrder::exact; }
  void test(const TestPart& part, Meter& metrics) override { trainer_.test(part, metrics); }
  void test_client(std::size_t group, Meter& metrics) override;  // all of its clients together

 private:
  // What it takes to average inside a rank group; made with the first task, which brings the group and the model.
  struct Inside {
    Inside(GroupTrainer& trainer, LocalTask& task);
    RankGroups lanes;  // each rank by itself
    Averaging averaging;
  };

  ModelTrainer& trainer_;
  const ClientGroups& groups_;
  std::unique_ptr<Algorithm> algorithm_;
  GroupTrainerOptions options_;
  ClientSampler sampler_;
  std::optional<Inside> inside_;
};

}  // namespace fedrun::fl
