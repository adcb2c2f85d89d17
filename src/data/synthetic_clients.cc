#include <fedrun/core/error.h>
#include <fedrun/core/keyed_random.h>
#include <fedrun/data/distributions.h>
#include <fedrun/data/synthetic_clients.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace fedrun::data {
namespace {

constexpr std::size_t features = 60;
constexpr std::size_t classes = 10;
constexpr std::size_t least_samples = 50;
constexpr std::uint64_t client_stream = 0;

using Features = std::array<double, features>;

// One client's way to label its inputs.
class Task {
 public:
  Task(KeyedRandom& random, double alpha) {
    const double mean = alpha * draw_normal(random);
    for (Features& row : weights_) {
      for (double& weight : row) weight = mean + draw_normal(random);
    }
    for (double& bias : biases_) bias = mean + draw_normal(random);
  }

  std::uint8_t label_of(const Features& input) const {
    std::array<double, classes> scores = biases_;
    for (std::size_t c = 0; c < classes; ++c) {
      scores[c] = std::inner_product(input.begin(), input.end(), weights_[c].begin(), scores[c]);
    }
    return static_cast<std::uint8_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  }

 private:
  std::array<Features, classes> weights_{};
  std::array<double, classes> biases_{};
};

Features draw_centre(KeyedRandom& random, double beta) {
  const double mean = beta * draw_normal(random);
  Features centre{};
  for (double& value : centre) value = mean + draw_normal(random);
  return centre;
}

void append_client(FeatureSet& set, KeyedRandom random, const SyntheticClientsOptions& options) {
  const std::size_t count = least_samples + static_cast<std::size_t>(std::exp(4 + 2 * draw_normal(random)));
  const Task task(random, options.alpha);
  const Features centre = draw_centre(random, options.beta);

  std::vector<SampleIndex> samples(count);
  std::iota(samples.begin(), samples.end(), static_cast<SampleIndex>(set.count()));
  set.clients.append(samples);
  for (std::size_t i = 0; i < count; ++i) {
    Features input{};
    for (std::size_t j = 0; j < features; ++j) {
      const double deviation = std::pow(static_cast<double>(j + 1), -0.6);  // the root of the variance
      input[j] = centre[j] + deviation * draw_normal(random);
      set.values.push_back(static_cast<float>(input[j]));
    }
    set.labels.push_back(task.label_of(input));
  }
}

}  // namespace

FeatureSet make_synthetic_clients(const SyntheticClientsOptions& options) {
  if (options.clients < 1 || !(options.alpha >= 0) || !(options.beta >= 0)) {
    throw UsageError(fmt::format("synthetic({}, {}) for {} clients: give 1 client or more, and no negative number",
                                 options.alpha, options.beta, options.clients));
  }
  FeatureSet set{.name = fmt::format("synthetic({}, {})", options.alpha, options.beta),
                 .sample_shape = {features},
                 .classes = classes};
  for (std::size_t client = 0; client < options.clients; ++client) {
    append_client(set, KeyedRandom(options.seed, client_stream, client), options);
  }
  return set;
}

}  // namespace fedrun::data
