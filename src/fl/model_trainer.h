// How a task is brought in: a model, a way to train it on one client, and a way to test it.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/fl/flat_model.h>
#include <fedrun/train/meter.h>
#include <torch/torch.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace fedrun::fl {

// One client's training in one round, as the trainer sees it. The ranks of a group get the same task.
struct LocalTask {
  std::size_t client = 0;
  std::uint64_t round = 0;
  std::uint64_t seed = 0;  // for all that is random; depends on the run's seed, the round and the client alone
  FlatModel& model;        // holds the global weights when training begins and the client's when it ends
  Communicator& group;     // the ranks that train this client together

  // Adds what the algorithm wants added to the gradients; nothing for most.
  std::function<void()> correct_gradients{};
  std::optional<std::chrono::steady_clock::time_point> deadline{};

  // To be called between backward() and step(): makes the gradients those of all ranks of the group, of which this one
  // has seen so many samples, and lets the algorithm have its say.
  void finish_gradients(std::size_t samples_of_this_rank);

  // To be called before each step: throws ClientTimeout once the client has had its time.
  void check_time() const;
};

struct ClientTimeout {};

struct LocalResult {
  std::int64_t steps = 0;   // of the optimizer
  double loss = 0;          // mean over all samples that this rank has trained on
  double loss_samples = 1;  // how many these are: the loss of a group is the mean over those of all its ranks
  // The client's weight in the average, where it is not all of its samples; the same on every rank of the group.
  std::optional<double> samples{};
};

// One of `parts` equal parts of what is tested.
struct TestPart {
  std::size_t index = 0;
  std::size_t parts = 1;
};

// Used by one thread.
class ModelTrainer {
 public:
  virtual ~ModelTrainer() = default;

  virtual torch::nn::Module& model() = 0;

  // Trains the model in place. An optimizer is new in each round. What it throws costs this client its place in the
  // round, and no more.
  virtual LocalResult train(LocalTask& task) = 0;

  // Does train() give the same bits on rank groups of any size? Not where a batch is divided among the ranks.
  virtual bool is_same_on_any_group() const { return false; }

  // Adds named metrics of the model as it is, each weighted by its number of samples; the same names on every rank,
  // with 0 samples where there are none.
  virtual void test(const TestPart& part, Meter& metrics) = 0;

  // The same of one client's samples, for Federation::evaluate_clients(). Throws UsageError unless it is implemented.
  virtual void test_client(std::size_t client, Meter& metrics);
};

}  // namespace fedrun::fl
