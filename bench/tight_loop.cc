#include "tight_loop.h"

#include <fedrun/core/keyed_random.h>
#include <fedrun/data/distributions.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace fedrun::bench {

TightLoop::TightLoop(const Settings& settings)
    : settings_(settings),
      classifier_(settings.features, settings.classes, fl::LinearOutput::sigmoid),
      global_((settings.features + 1) * settings.classes),
      local_(global_.size()),
      sum_(global_.size()),
      inputs_(settings.batch_size * settings.features),
      targets_(settings.batch_size) {}

void TightLoop::run(std::span<const std::size_t> chosen, std::uint64_t round) {
  double samples = 0;
  for (const std::size_t client : chosen) samples += static_cast<double>(clients_[client].samples);
  std::fill(sum_.begin(), sum_.end(), 0.F);
  for (const std::size_t client : chosen) {
    std::copy(global_.begin(), global_.end(), local_.begin());
    train(clients_[client], KeyedRandom(round, 0, client).next());
    const auto weight = static_cast<float>(static_cast<double>(clients_[client].samples) / samples);
    for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += weight * local_[i];
  }
  std::swap(global_, sum_);
}

void TightLoop::train(const Client& client, std::uint64_t seed) {
  order_.resize(client.samples);
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  KeyedRandom random(seed, 0, 0);
  data::shuffle(std::span(order_), random);
  for (std::size_t first = 0; first < client.samples; first += settings_.batch_size) {
    const std::size_t rows = std::min(settings_.batch_size, client.samples - first);
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t sample = order_[first + row];
      std::copy_n(client.inputs + sample * settings_.features, settings_.features,
                  inputs_.data() + row * settings_.features);
      targets_[row] = client.targets[sample];
    }
    classifier_.add_gradient(local_.data(), {inputs_.data(), rows, settings_.features}, targets_.data(), -settings_.lr,
                             local_.data());
  }
}

}  // namespace fedrun::bench
