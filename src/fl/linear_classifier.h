// Linear models trained without autograd: their gradients are known, and building a graph costs more than computing
// them.
#pragma once

#include <fedrun/fl/row_kernels.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fedrun::fl {

// What becomes of the scores Wx + b before their cross entropy is taken.
enum class LinearOutput { scores, sigmoid };

// Weights lie in one piece: a row of W for each class, then b. Used by one thread.
class LinearClassifier {
 public:
  LinearClassifier(std::size_t features, std::size_t classes, LinearOutput output)
      : features_(features), classes_(classes), output_(output) {}

  std::size_t features() const { return features_; }

  // The mean cross entropy of the samples, one per row, whose gradient, times rate, is added to `sum`. That may be the
  // weights themselves: with a negative rate, a step of SGD. Throws UsageError for a target that is not a class.
  double add_gradient(const float* weights, const Matrix& inputs, const std::int64_t* targets, float rate, float* sum);

 private:
  // Turns a row of scores into the gradient of its cross entropy, which is returned.
  double differentiate(float* scores, std::int64_t target) const;

  std::size_t features_;
  std::size_t classes_;
  LinearOutput output_;
  std::vector<float> scores_;       // of a batch; kept, because they are small and often needed
  std::vector<float> bias_errors_;  // likewise
};

}  // namespace fedrun::fl
