// Trains a model of the registry to classify the samples of TensorClients: the task of nearly all published results.
#pragma once

#include <fedrun/fl/linear_classifier.h>
#include <fedrun/fl/model_trainer.h>
#include <fedrun/fl/tensor_clients.h>
#include <fedrun/models/registry.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

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

// Logistic regression and other linear models are trained without autograd, which would cost more than the model does;
// with the same results up to rounding. The clients must outlive it.
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
  using Indices = std::span<const data::SampleIndex>;

  // Each returns the mean loss of the samples. Autograd's gradients go where the parameters have theirs; a linear
  // model's, times rate, are added to `sum`, which may be the weights themselves.
  double backward(Indices samples);
  double add_linear_gradient(Indices samples, const FlatModel& model, double rate, const torch::Tensor& sum);
  void measure(Split split, const Samples& samples_to_test, Meter& metrics);
  Samples on_device(const Samples& samples) const;  // where the model is

  models::Model model_;
  std::optional<LinearClassifier> linear_;  // the model, if it is one
  const TensorClients& clients_;
  ClassificationOptions options_;
  Samples batch_;  // of a linear model, which needs no new one for each step
};

}  // namespace fedrun::fl
