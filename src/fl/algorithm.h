// What federated algorithms differ in: what is added to local gradients, what a client sends, and what becomes of it.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fedrun::fl {

// Δ = y − w is what a client's training has changed of the d global weights w.
struct ClientUpdate {
  std::size_t client = 0;
  std::int64_t steps = 0;  // of the local optimizer
  torch::Tensor delta{};   // Δ; the algorithm may write into it
  torch::Tensor extra{};   // for the algorithm to fill, see Algorithm::extra_parts
  double scalar = 0;       // likewise
};

// The averages over the clients that took part, each weighted as the algorithm says.
struct RoundAverage {
  std::size_t clients = 0;
  torch::Tensor delta;
  torch::Tensor extra;
  double scalar = 0;
};

// Every rank has one and calls it with the same averages, so that their global weights stay equal. Used by one thread.
class Algorithm {
 public:
  virtual ~Algorithm() = default;
  virtual std::string_view name() const = 0;

  // How many vectors of d elements each client sends besides its Δ.
  virtual int extra_parts() const { return 0; }

  // What it remembers between rounds, by name, for checkpoints. A tensor may be undefined before the first round.
  virtual std::vector<std::pair<std::string, torch::Tensor*>> memory() { return {}; }

  // What it remembers of single clients, where it does. Such a client always trains on the same rank group, whose ranks
  // alone remember it.
  virtual std::map<std::size_t, torch::Tensor>* client_memory() { return nullptr; }

  // Called after each backward(), with the weights as they are and as the round found them.
  virtual bool corrects_gradients() const { return false; }
  virtual void correct_gradients(std::size_t /*client*/, const torch::Tensor& /*gradients*/,
                                 const torch::Tensor& /*local_weights*/, const torch::Tensor& /*global_weights*/) {}

  // What a client with so many samples counts for in the averages.
  virtual double weight_of(double samples) const { return samples; }

  // Turns what the client has learnt into what it sends. Called only for clients that take part.
  virtual void prepare(ClientUpdate& /*update*/) {}

  // After the clients of a round have been prepared, one of these: moves the global weights, or forgets the round,
  // because too few clients have finished.
  virtual void discard() {}
  virtual void apply(const torch::Tensor& global_weights, const RoundAverage& average) = 0;
};

// w += Σ pₖΔₖ with pₖ = nₖ / Σn.
class FedAvg : public Algorithm {
 public:
  std::string_view name() const override { return "fedavg"; }
  void apply(const torch::Tensor& global_weights, const RoundAverage& average) override;
};

// FedAvg with a spring to the global weights: local gradients get μ(y − w) added.
class FedProx : public FedAvg {
 public:
  explicit FedProx(double mu);
  std::string_view name() const override { return "fedprox"; }
  bool corrects_gradients() const override { return true; }
  void correct_gradients(std::size_t client, const torch::Tensor& gradients, const torch::Tensor& local_weights,
                         const torch::Tensor& global_weights) override;

 private:
  double mu_;
};

// m = βm + Δ; w += ηm.
struct FedAvgMOptions {
  double lr = 1;
  double momentum = 0.9;
};
class FedAvgM : public Algorithm {
 public:
  explicit FedAvgM(const FedAvgMOptions& options = {});
  std::string_view name() const override { return "fedavgm"; }
  std::vector<std::pair<std::string, torch::Tensor*>> memory() override { return {{"momentum", &momentum_}}; }
  void apply(const torch::Tensor& global_weights, const RoundAverage& average) override;

 private:
  FedAvgMOptions options_;
  torch::Tensor momentum_;
};

// m = β₁m + (1−β₁)Δ; w += ηm / (√v + τ), where v is
//   adagrad: v + Δ²    adam: β₂v + (1−β₂)Δ²    yogi: v − (1−β₂)Δ² sign(v − Δ²)
// and starts at τ², as in "Adaptive Federated Optimization".
enum class ServerOptimizer { adagrad, adam, yogi };
struct FedOptOptions {
  double lr = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double tau = 1e-3;
};
class FedOpt : public Algorithm {
 public:
  explicit FedOpt(ServerOptimizer kind, const FedOptOptions& options = {});
  std::string_view name() const override;
  std::vector<std::pair<std::string, torch::Tensor*>> memory() override { return {{"m", &m_}, {"v", &v_}}; }
  void apply(const torch::Tensor& global_weights, const RoundAverage& average) override;

 private:
  ServerOptimizer kind_;
  FedOptOptions options_;
  torch::Tensor m_;
  torch::Tensor v_;
};

// Clients that take more steps do not count for more: w += (Σ pₖaₖ)(Σ pₖΔₖ/aₖ), where a is the number of local steps τ,
// or with local momentum ρ: [τ − ρ(1−ρ^τ)/(1−ρ)]/(1−ρ).
class FedNova : public Algorithm {
 public:
  explicit FedNova(double local_momentum = 0);
  std::string_view name() const override { return "fednova"; }
  void prepare(ClientUpdate& update) override;
  void apply(const torch::Tensor& global_weights, const RoundAverage& average) override;

 private:
  double local_momentum_;
};

// Control variates c and cₖ against the drift of clients: local gradients become g − cₖ + c; then
// cₖ⁺ = cₖ − c + (w − y)/(Kη) after K local steps of rate η, w += η_g/|S| ΣΔ, c += Σ(cₖ⁺ − cₖ)/N.
// Local momentum ρ lets each gradient count 1/(1−ρ) times, and so does it c and cₖ, which are already measured by the
// distance that clients go; they are therefore added (1−ρ) times. Keeps d numbers for each client that has ever trained
// on this rank group.
struct ScaffoldOptions {
  std::size_t clients = 0;    // N, of all that there are
  double local_lr = 0;        // η, of SGD
  double local_momentum = 0;  // ρ
  double global_lr = 1;       // η_g
};
class Scaffold : public Algorithm {
 public:
  explicit Scaffold(const ScaffoldOptions& options);
  std::string_view name() const override { return "scaffold"; }
  int extra_parts() const override { return 1; }
  std::vector<std::pair<std::string, torch::Tensor*>> memory() override { return {{"control", &control_}}; }
  std::map<std::size_t, torch::Tensor>* client_memory() override { return &of_client_; }
  bool corrects_gradients() const override { return true; }
  void correct_gradients(std::size_t client, const torch::Tensor& gradients, const torch::Tensor& local_weights,
                         const torch::Tensor& global_weights) override;
  double weight_of(double) const override { return 1; }
  void prepare(ClientUpdate& update) override;
  void discard() override { learnt_.clear(); }
  void apply(const torch::Tensor& global_weights, const RoundAverage& average) override;

 private:
  ScaffoldOptions options_;
  torch::Tensor control_;                           // c; undefined: 0
  std::map<std::size_t, torch::Tensor> of_client_;  // cₖ; absent: 0
  std::map<std::size_t, torch::Tensor> learnt_;     // cₖ⁺ of this round's clients
};

}  // namespace fedrun::fl
