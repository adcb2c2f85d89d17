// Rounds of federated training: clients are chosen, trained where there is room, and added up with one allreduce. There
// is no server process: every rank trains, and every rank holds the result.
#pragma once

#include <fedrun/fl/algorithm.h>
#include <fedrun/fl/client_data.h>
#include <fedrun/fl/model_trainer.h>
#include <fedrun/fl/rank_groups.h>
#include <fedrun/fl/round_sum.h>
#include <fedrun/sampler/client_sampler.h>
#include <fedrun/train/meter.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace fedrun::fl {

// What happens to running statistics such as BatchNorm's; counters and other whole numbers are never averaged.
enum class BufferRule {
  average,  // like FedAvg's weights
  skip,     // they stay as they were at the beginning
};

struct FederationOptions {
  std::size_t clients_per_round = 1;
  ClientSamplerOptions sampling{};
  std::uint64_t seed = 0;                       // of what is random in training and noise
  std::size_t min_clients = 1;                  // with fewer that finish, run_round() throws
  std::chrono::milliseconds client_timeout{0};  // a client that takes longer is left out; 0: none is
  BufferRule buffers = BufferRule::average;
  SumOrder sums = SumOrder::fast;  // exact: results do not depend on the number of ranks; needs groups of one rank

  // Each client's Δ is scaled down to this norm, and gets Gaussian noise of noise_multiplier · clip_norm; 0: neither.
  // No guarantee of privacy comes with it.
  double clip_norm = 0;
  double noise_multiplier = 0;
};

// Why a client's work does not count.
enum class Outcome { finished, failed, diverged, late };
std::string_view to_string(Outcome outcome);

struct DroppedClient {
  std::size_t client = 0;
  Outcome reason = Outcome::failed;
};

struct RoundReport {
  std::uint64_t round = 0;
  std::vector<std::size_t> clients{};    // that were chosen
  std::vector<DroppedClient> dropped{};  // of these
  double local_loss = 0;                 // while training, weighted like the clients
  double train_seconds = 0;              // of this rank
  double communicate_seconds = 0;        // of this rank, waiting for others included
};

// Used by one thread; what it is given must outlive it. Every member is collective over all ranks.
class Federation {
 public:
  // All ranks start with the weights of rank 0. Throws UsageError for options that cannot work, and MismatchError where
  // the ranks' clients or options differ.
  Federation(RankGroups& groups, ModelTrainer& trainer, const ClientData& clients, std::unique_ptr<Algorithm> algorithm,
             const FederationOptions& options);

  // Afterwards the trainer's model has the new global weights, the same bits on every rank.
  RoundReport run_round();

  // The trainer's metrics of the global model, over all of its test data; each rank tests a part.
  Meter evaluate();

  // Writes everything that the next rounds depend on into the directory, in place of what an earlier call has written;
  // a run that is killed meanwhile leaves one of the two whole. Ranks on several hosts need a directory that all of
  // them see.
  void save(const std::filesystem::path& directory);
  // Goes on where save() left off, to the same bits, also on another number of ranks where sums are exact. Throws
  // UsageError for a checkpoint of another model or algorithm. False, if there is no checkpoint.
  bool resume(const std::filesystem::path& directory);

  std::uint64_t round() const { return round_; }  // the next one
  const torch::Tensor& global_state() const { return global_; }

 private:
  struct Layout;  // of a round's sum

  void check() const;
  void check_ranks_agree();
  Layout layout(std::size_t chosen) const;
  std::vector<std::size_t> positions_of_this_group(const std::vector<std::size_t>& chosen) const;
  Outcome train_client(std::size_t client, double weight, const Layout& layout);
  Outcome run_trainer(std::size_t client, LocalResult& result);
  bool ran_late(std::chrono::steady_clock::time_point start);
  bool take_update(std::size_t client);
  void add_noise(std::size_t client, const torch::Tensor& delta) const;
  void apply_average(const Layout& layout, std::size_t finished);
  void write_files(const std::filesystem::path& directory);
  void read_files(const std::filesystem::path& directory);

  RankGroups& groups_;
  ModelTrainer& trainer_;
  const ClientData& clients_;
  std::unique_ptr<Algorithm> algorithm_;
  FederationOptions options_;
  ClientSampler sampler_;
  FlatModel model_;
  torch::Tensor global_;   // parameters and float buffers
  torch::Tensor message_;  // of one client: Δ of these, then the algorithm's extra parts
  RoundSum sum_;
  std::uint64_t round_ = 0;
};

}  // namespace fedrun::fl
