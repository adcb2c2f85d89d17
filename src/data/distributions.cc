#include <fedrun/core/error.h>
#include <fedrun/data/distributions.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fedrun::data {

// Box and Muller's way, of which only one of two results is used: a generator without memory is worth the second.
double draw_normal(KeyedRandom& random) {
  const double radius = std::sqrt(-2 * std::log1p(-random.unit()));
  return radius * std::cos(2 * std::numbers::pi * random.unit());
}

// Marsaglia and Tsang's way for shapes from 1. Below it, Gamma(shape) is Gamma(shape + 1) · U^(1/shape).
double draw_log_gamma(KeyedRandom& random, double shape) {
  if (!(shape > 0)) throw UsageError(fmt::format("a gamma distribution cannot have the shape {}", shape));
  if (shape < 1) {
    const double log_uniform = std::log1p(-random.unit());
    return draw_log_gamma(random, shape + 1) + log_uniform / shape;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double normal = draw_normal(random);
    const double root = 1 + c * normal;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log1p(-random.unit()) < 0.5 * normal * normal + d - d * v + d * std::log(v)) return std::log(d * v);
  }
}

std::vector<double> draw_log_dirichlet(KeyedRandom& random, std::size_t count, double alpha) {
  std::vector<double> logarithms(count);
  for (double& logarithm : logarithms) logarithm = draw_log_gamma(random, alpha);
  return logarithms;
}

std::vector<double> shares_of(std::span<const double> logarithms) {
  std::vector<double> shares(logarithms.begin(), logarithms.end());
  if (shares.empty()) return shares;
  const double largest = *std::max_element(shares.begin(), shares.end());  // its exponential is then 1, never 0
  double sum = 0;
  for (double& share : shares) sum += share = std::exp(share - largest);
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace fedrun::data
