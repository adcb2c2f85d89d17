// One client's training on the ranks of a group, from the global weights to what it sends.
#pragma once

#include <fedrun/fl/algorithm.h>
#include <fedrun/fl/federation_options.h>
#include <fedrun/fl/model_trainer.h>
#include <fedrun/fl/round_report.h>

#include <cstdint>
#include <map>
#include <optional>

namespace fedrun::fl {

// All that is random in a client's training depends on this and the seed.
struct TrainingKey {
  std::size_t client = 0;
  std::uint64_t round = 0;
  int attempt = 0;
};

struct ClientWork {
  Outcome outcome = Outcome::finished;
  double scalar = 0;                // that the algorithm sends
  double loss = 0;                  // mean over the samples; the same on every rank of the group
  std::optional<double> samples{};  // where they are not those that the ClientData says
};

// How many numbers a client sends: Δ of parameters and float buffers, then the algorithm's extra parts.
inline std::int64_t message_size(const FlatModel& model, const Algorithm& algorithm) {
  return model.state_count() + algorithm.extra_parts() * model.weight_count();
}

// Used by one thread; what it is given must outlive it.
class ClientTraining {
 public:
  ClientTraining(Communicator& group, ModelTrainer& trainer, FlatModel& model, Algorithm& algorithm,
                 const RoundSum& sum, const FederationOptions& options);

  // Collective over the group; every rank of it gets the same outcome. Afterwards message() is the client's, if it
  // has finished.
  ClientWork run(const TrainingKey& key, const torch::Tensor& global_state);

  // What a client begins with: the global state, and its own running statistics where it keeps them.
  void fill_model(const torch::Tensor& global_state, std::optional<std::size_t> client);

  // Δ of parameters and float buffers, then the algorithm's extra parts.
  const torch::Tensor& message() const { return message_; }

  // Where clients keep their running statistics: those of the clients that have trained here, without what they have
  // learnt since the last round ended.
  std::map<std::size_t, torch::Tensor>& own_buffers() { return own_buffers_; }

  // The round has ended: its clients keep the running statistics that they have learnt in it, or do not.
  void keep_learnt_buffers();
  void forget_learnt_buffers() { learnt_buffers_.clear(); }

 private:
  Outcome run_trainer(const TrainingKey& key, const torch::Tensor& global_state, LocalResult& result);
  void average_loss(LocalResult& result);
  bool take_change(const TrainingKey& key, const torch::Tensor& global_state);
  void take_buffers(std::size_t client);
  void add_noise(const TrainingKey& key);

  Communicator& group_;
  ModelTrainer& trainer_;
  FlatModel& model_;
  Algorithm& algorithm_;
  const RoundSum& sum_;  // to which messages will be added
  FederationOptions options_;
  torch::Tensor message_;
  // Parts of it, kept because making a view costs about as much as a step of a small model.
  torch::Tensor change_;         // of parameters and float buffers
  torch::Tensor delta_;          // of parameters
  torch::Tensor buffer_change_;  // of float buffers
  torch::Tensor extra_;          // the algorithm's
  std::map<std::size_t, torch::Tensor> own_buffers_;
  std::map<std::size_t, torch::Tensor> learnt_buffers_;  // in this round, which may be undone
};

}  // namespace fedrun::fl
