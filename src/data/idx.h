// Reads idx files, the format of MNIST and its relatives: a magic number, big-endian dimensions, then the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace fedrun::data {

// What a file must hold; the value is its number of dimensions.
enum class IdxContent { labels = 1, images = 3 };

struct IdxArray {
  std::vector<size_t> dimensions;    // images: count, rows, columns; labels: count
  std::vector<std::uint8_t> values;  // as many as the dimensions multiply to
};

// The file may be plain or gzip. Throws UsageError when it is missing, holds something else, or is damaged. A header
// that lies about the size costs little memory: the array at most doubles each time that it has been filled.
IdxArray read_idx(const std::filesystem::path& path, IdxContent content);

}  // namespace fedrun::data
