// Labelled numbers that come with their clients: what generators and the federated file formats yield.
#pragma once

#include <fedrun/data/partition.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace fedrun::data {

struct FeatureSet {
  std::string name;
  std::vector<std::int64_t> sample_shape{};  // such as 60, or 1, 28, 28
  std::size_t classes = 0;
  std::vector<float> values{};         // sample by sample
  std::vector<std::uint8_t> labels{};  // one per sample, below classes
  Partition clients{};

  std::size_t count() const { return labels.size(); }
  std::size_t features() const {  // per sample
    return static_cast<std::size_t>(
        std::accumulate(sample_shape.begin(), sample_shape.end(), std::int64_t{1}, std::multiplies<>()));
  }
};

}  // namespace fedrun::data
