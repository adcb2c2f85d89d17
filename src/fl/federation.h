// Rounds of federated training: clients are chosen, trained where there is room, and added up with one allreduce. There
// is no server process: every rank trains, and every rank holds the result.
#pragma once

#include <fedrun/fl/algorithm.h>
#include <fedrun/fl/averaging.h>
#include <fedrun/fl/client_data.h>
#include <fedrun/fl/federation_options.h>
#include <fedrun/fl/model_trainer.h>
#include <fedrun/fl/rank_groups.h>
#include <fedrun/fl/result_aggregator.h>
#include <fedrun/fl/round_report.h>
#include <fedrun/sampler/client_sampler.h>
#include <fedrun/train/meter.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fedrun::fl {

// Removes what Federation::save() has written into the directory. To be called on one rank.
void remove_checkpoint(const std::filesystem::path& directory);

// Used by one thread; what it is given must outlive it. Every member is collective over all ranks.
class Federation {
 public:
  // All ranks start with the weights of rank 0. Throws UsageError for options that cannot work, and MismatchError where
  // the ranks' clients or options differ.
  Federation(RankGroups& groups, ModelTrainer& trainer, const ClientData& clients, std::unique_ptr<Algorithm> algorithm,
             const FederationOptions& options);

  // Afterwards the trainer's model has the new global weights, the same bits on every rank. Throws UsageError on every
  // rank where too few clients finish.
  RoundReport run_round();

  // The trainer's metrics of the global model, over all of its test data; each rank tests a part.
  Meter evaluate();

  // Those of every single client, which costs time and memory in proportion to the number of clients. Clients that keep
  // their running statistics are tested with these.
  ResultAggregator evaluate_clients();

  // Writes everything that the next rounds depend on into the directory, in place of what an earlier call has written;
  // a run that is killed meanwhile leaves one of the two whole. Ranks on several hosts need a directory that all of
  // them see.
  void save(const std::filesystem::path& directory);
  // Goes on where save() left off, to the same bits, also on another number of ranks where sums are exact. Throws
  // UsageError for a checkpoint of another model, algorithm, seed or set of clients, and MismatchError where the ranks
  // do not find the same one. False, if there is no checkpoint.
  bool resume(const std::filesystem::path& directory);

  std::uint64_t round() const { return round_; }  // the next one
  const torch::Tensor& global_state() const { return averaging_.global_state(); }

 private:
  void check() const;
  void check_ranks_agree();
  std::vector<std::pair<std::string, std::string>> traits() const;
  void check_is_of_this_run(torch::serialize::InputArchive& archive, const std::filesystem::path& directory) const;
  void write_files(const std::filesystem::path& directory);
  void read_files(const std::filesystem::path& directory);

  RankGroups& groups_;
  ModelTrainer& trainer_;
  const ClientData& clients_;
  std::unique_ptr<Algorithm> algorithm_;
  FederationOptions options_;
  ClientSampler sampler_;
  FlatModel model_;
  Averaging averaging_;
  std::uint64_t client_sizes_hash_;
  std::uint64_t round_ = 0;
};

}  // namespace fedrun::fl
