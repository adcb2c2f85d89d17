// Federated averaging of logistic regression as one process does it that does nothing else: the mark that rounds on
// several ranks have to beat.
#pragma once

#include <fedrun/fl/linear_classifier.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fedrun::bench {

// All samples lie ready as floats, the weights are one vector, gradients come from the same kernels that fedrun has,
// and nobody asks whether a client has failed.
class TightLoop {
 public:
  struct Settings {
    std::size_t features = 0;
    std::size_t classes = 0;
    std::size_t batch_size = 0;
    float lr = 0;
  };
  struct Client {
    const float* inputs = nullptr;
    const std::int64_t* targets = nullptr;
    std::size_t samples = 0;
  };

  explicit TightLoop(const Settings& settings);

  void add_client(const Client& client) { clients_.push_back(client); }
  void run(std::span<const std::size_t> chosen, std::uint64_t round);

 private:
  void train(const Client& client, std::uint64_t seed);

  Settings settings_;
  fl::LinearClassifier classifier_;
  std::vector<Client> clients_;
  std::vector<float> global_;
  std::vector<float> local_;
  std::vector<float> sum_;
  std::vector<std::size_t> order_;
  std::vector<float> inputs_;  // of a batch
  std::vector<std::int64_t> targets_;
};

}  // namespace fedrun::bench
