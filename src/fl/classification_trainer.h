// Trains a model of the registry to classify the samples of TensorClients: the task of nearly all published results.
#pragma once

#include <fedrun/fl/model_trainer.h>
#include <fedrun/fl/tensor_clients.h>
#include <fedrun/models/registry.h>

#include <cstddef>

namespace fedrun::fl {

enum class ClientOptimizer { sgd, adam };

struct ClassificationOptions {
  int epochs = 1;
  std::size_t batch_size = 10;  // of all ranks of a group together; 0: all samples of the client at once
  ClientOptimizer optimizer = ClientOptimizer::sgd;
  double lr = 0.03;
  double momentum = 0;      // of sgd
  double weight_decay = 0;  // of adam, which is its amsgrad form
};

// The clients must outlive it.
class ClassificationTrainer : public ModelTrainer {
 public:
  // Throws UsageError for numbers that make no training.
  ClassificationTrainer(models::Model model, const TensorClients& clients, const ClassificationOptions& options);

  torch::nn::Module& model() override { return *model_; }
  LocalResult train(LocalTask& task) override;

  // train_loss, train_accuracy, test_loss and test_accuracy. Which samples go through the model together does not
  // depend on the number of parts, so neither do the results.
  void test(const TestPart& part, Meter& metrics) override;
  // The same; test_loss and test_accuracy where clients have test samples of their own.
  void test_client(std::size_t client, Meter& metrics) override;

 private:
  void measure(Split split, const Samples& batch, Meter& metrics);

  models::Model model_;
  const TensorClients& clients_;
  ClassificationOptions options_;
};

}  // namespace fedrun::fl
