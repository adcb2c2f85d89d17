// Labelled images as plain bytes: what every reader and generator yields, and what ImageDataset makes tensors of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fedrun::data {

struct ImageSet {
  std::string name;  // as reports show it, such as "MNIST"
  size_t channels = 1;
  size_t rows = 0;
  size_t columns = 0;
  size_t classes = 0;
  bool synthetic = false;              // drawn by a program: reports must say so
  std::vector<std::uint8_t> pixels{};  // image by image, channel by channel, row by row
  std::vector<std::uint8_t> labels{};  // one per image, below classes

  size_t count() const { return labels.size(); }
  size_t image_bytes() const { return channels * rows * columns; }
};

}  // namespace fedrun::data
