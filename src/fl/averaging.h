// Trains given clients on the rank groups and moves the global weights by what they have learnt, with one allreduce.
#pragma once

#include <fedrun/fl/algorithm.h>
#include <fedrun/fl/client_data.h>
#include <fedrun/fl/client_training.h>
#include <fedrun/fl/federation_options.h>
#include <fedrun/fl/flat_model.h>
#include <fedrun/fl/model_trainer.h>
#include <fedrun/fl/rank_groups.h>
#include <fedrun/fl/round_report.h>
#include <fedrun/fl/round_sum.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace fedrun::fl {

// Used by one thread; what it is given must outlive it.
class Averaging {
 public:
  // Collective over the world of the groups. The global weights are those that the model has.
  Averaging(RankGroups& groups, ModelTrainer& trainer, const ClientData& clients, FlatModel& model,
            Algorithm& algorithm, const FederationOptions& options, std::size_t most_clients);

  // Collective: trains the clients and adds up what they bring; the global weights stay. Every rank gets the same
  // report, but for the times.
  RoundReport train(std::uint64_t round, int attempt, std::vector<std::size_t> chosen);

  // After train(): moves the global weights, which the model has then, the same bits on every rank. Or leaves it.
  void apply(const RoundReport& report);
  void discard();

  const torch::Tensor& global_state() const { return global_; }  // parameters and float buffers
  void set_global_state(const torch::Tensor& state);

  // Puts the global weights into the model, with the client's own running statistics where it keeps them.
  void give_model_to(std::optional<std::size_t> client);

  // What is remembered of single clients, by name; on the ranks of the group that trains them, see home_of().
  std::vector<std::pair<const char*, std::map<std::size_t, torch::Tensor>*>> client_memories();

  // The rank group that always trains the client, where something is remembered of it.
  int home_of(std::size_t client) const;

 private:
  struct Totals;

  std::vector<std::size_t> positions_of_this_group(const std::vector<std::size_t>& chosen);
  void train_client(const TrainingKey& key, std::size_t position, const Totals& totals);

  RankGroups& groups_;
  const ClientData& clients_;
  FlatModel& model_;
  Algorithm& algorithm_;
  FederationOptions options_;
  RoundSum sum_;
  ClientTraining training_;
  torch::Tensor global_;
};

}  // namespace fedrun::fl
