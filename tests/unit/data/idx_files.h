// Writes idx files in the true format, whole or damaged on purpose, into a directory that the test leaves no trace of.
#pragma once

#include <stdlib.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace fedrun::data {

using Bytes = std::vector<std::uint8_t>;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "fedrun_data_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a directory like " + name);
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(const std::string& name, const Bytes& bytes) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::remove(file);  // ext4 flushes to the disk when a file is overwritten, which takes milliseconds
    std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    return file;
  }

 private:
  std::filesystem::path path_;
};

// The magic number and the dimensions, each four bytes with the highest first.
inline Bytes idx_header(std::uint32_t magic, const std::vector<std::uint32_t>& dimensions) {
  Bytes bytes;
  const auto append = [&](std::uint32_t word) {
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<std::uint8_t>(word >> shift));
  };
  append(magic);
  for (const std::uint32_t dimension : dimensions) append(dimension);
  return bytes;
}

inline Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// Pixels count up, with a step that is no divisor of 256, so that no two images are equal.
inline Bytes idx_images(std::uint32_t count, std::uint32_t rows = 28, std::uint32_t columns = 28) {
  Bytes pixels(std::size_t{count} * rows * columns);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 7);
  return idx_header(0x803, {count, rows, columns}) + pixels;
}

inline Bytes idx_labels(const Bytes& labels) {
  return idx_header(0x801, {static_cast<std::uint32_t>(labels.size())}) + labels;
}

inline Bytes gzip(const Bytes& plain) {
  constexpr int gzip_window = 15 + 16;  // zlib's way to ask for the gzip format
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2 failed");
  }
  Bytes packed(deflateBound(&stream, plain.size()));
  stream.next_in = const_cast<std::uint8_t*>(plain.data());
  stream.avail_in = static_cast<unsigned>(plain.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<unsigned>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate failed");
  return packed;
}

}  // namespace fedrun::data
