// Draws from the distributions by which data is dealt out to clients and made up, from keyed random numbers.
#pragma once

#include <fedrun/core/keyed_random.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace fedrun::data {

// The standard library has all of these, but each implementation draws differently.

double draw_normal(KeyedRandom& random);  // mean 0, deviation 1

// The logarithm of a draw from Gamma(shape, 1): with a small shape most draws are too small for a double, and what
// matters about them is how they compare. Throws UsageError unless shape is positive.
double draw_log_gamma(KeyedRandom& random, double shape);

// Shares of a whole, drawn from the symmetric Dirichlet(alpha); as logarithms that lack a common summand.
std::vector<double> draw_log_dirichlet(KeyedRandom& random, std::size_t count, double alpha);

// Turns such logarithms into shares that add up to 1.
std::vector<double> shares_of(std::span<const double> logarithms);

// Fisher–Yates from the end.
template <typename Value>
void shuffle(std::span<Value> values, KeyedRandom& random) {
  for (std::size_t remaining = values.size(); remaining > 1; --remaining) {
    std::swap(values[remaining - 1], values[random.below(remaining)]);
  }
}

}  // namespace fedrun::data
