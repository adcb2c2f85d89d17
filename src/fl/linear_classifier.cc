#include <fedrun/core/error.h>
#include <fedrun/fl/linear_classifier.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fedrun::fl {

double LinearClassifier::add_gradient(const float* weights, const Matrix& inputs, const std::int64_t* targets,
                                      float rate, float* sum) {
  const float* bias = weights + classes_ * features_;
  scores_.resize(inputs.rows * classes_);
  bias_errors_.assign(classes_, 0);
  multiply_rows(inputs, {weights, classes_, features_}, scores_.data());
  double loss = 0;
  for (std::size_t row = 0; row < inputs.rows; ++row) {
    float* scores = scores_.data() + row * classes_;
    for (std::size_t c = 0; c < classes_; ++c) scores[c] += bias[c];
    loss += differentiate(scores, targets[row]);
    for (std::size_t c = 0; c < classes_; ++c) bias_errors_[c] += scores[c];
  }
  const float mean_rate = rate / static_cast<float>(inputs.rows);
  add_products({scores_.data(), inputs.rows, classes_}, inputs, mean_rate, sum);
  for (std::size_t c = 0; c < classes_; ++c) sum[classes_ * features_ + c] += mean_rate * bias_errors_[c];
  return loss / static_cast<double>(inputs.rows);
}

// With the outputs o, of which the softmax is p, the cross entropy is log Σ exp(o) - o[target], and its gradient by o
// is p, less 1 at the target. That of a sigmoid is o (1 - o).
double LinearClassifier::differentiate(float* scores, std::int64_t target) const {
  if (target < 0 || static_cast<std::size_t>(target) >= classes_) {
    throw UsageError(fmt::format("a sample of class {}, where there are {} classes", target, classes_));
  }
  const bool has_sigmoid = output_ == LinearOutput::sigmoid;
  if (has_sigmoid) {
    for (std::size_t c = 0; c < classes_; ++c) scores[c] = 1 / (1 + std::exp(-scores[c]));
  }
  const float largest = *std::max_element(scores, scores + classes_);
  float sum = 0;
  for (std::size_t c = 0; c < classes_; ++c) sum += std::exp(scores[c] - largest);
  const double loss = std::log(sum) + largest - scores[target];
  for (std::size_t c = 0; c < classes_; ++c) {
    const float output = scores[c];
    const float is_target = static_cast<std::size_t>(target) == c ? 1.F : 0.F;
    scores[c] = (std::exp(output - largest) / sum - is_target) * (has_sigmoid ? output * (1 - output) : 1.F);
  }
  return loss;
}

}  // namespace fedrun::fl
