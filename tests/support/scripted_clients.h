// A federation whose clients learn what the test says, so that averages can be computed by hand.
#pragma once

#include <fedrun/fl/federation.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace fedrun::test {

// Client k has sizes[k] samples.
class ScriptedClients : public fl::ClientData {
 public:
  explicit ScriptedClients(std::vector<std::size_t> sizes) : sizes_(std::move(sizes)) {}
  std::size_t clients() const override { return sizes_.size(); }
  std::size_t train_samples(std::size_t client) const override { return sizes_[client]; }

 private:
  std::vector<std::size_t> sizes_;
};

// A model of two weights, (1, 1) at first, a running mean and a counter.
class TwoWeightsImpl : public torch::nn::Module {
 public:
  TwoWeightsImpl()
      : weights(register_parameter("weights", torch::ones(2))),
        mean(register_buffer("mean", torch::zeros(1))),
        counter(register_buffer("counter", torch::zeros({1}, torch::kInt64))) {}

  torch::Tensor weights;
  torch::Tensor mean;
  torch::Tensor counter;
};
TORCH_MODULE(TwoWeights);

class ScriptedTrainer : public fl::ModelTrainer {
 public:
  using Script = std::function<fl::LocalResult(TwoWeightsImpl& model, fl::LocalTask& task)>;
  explicit ScriptedTrainer(Script script) : script_(std::move(script)) {}

  torch::nn::Module& model() override { return *model_; }
  fl::LocalResult train(fl::LocalTask& task) override {
    const torch::NoGradGuard no_grad;
    return script_(*model_, task);
  }
  void test(const fl::TestPart& part, Meter& metrics) override {
    metrics.add("parts", 1, static_cast<double>(part.index == 0 ? part.parts : 0));
  }

  std::vector<float> weights() const { return {model_->weights[0].item<float>(), model_->weights[1].item<float>()}; }
  TwoWeightsImpl& two_weights() { return *model_; }

 private:
  TwoWeights model_;
  Script script_;
};

}  // namespace fedrun::test
