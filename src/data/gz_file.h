// Reads a file's bytes and unpacks them on the way when they are gzip; the content decides, not the name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

struct gzFile_s;  // zlib's, so that users of this header do not need zlib's

namespace fedrun::data {

// Used by one thread at a time.
class GzFile {
 public:
  // Throws UsageError when there is no such file or it cannot be opened.
  explicit GzFile(const std::filesystem::path& path);

  // Fills the buffer and returns how many bytes that took; fewer than asked for means the end. Throws UsageError for
  // damaged gzip data. The checksum at the end is verified by the read that meets the end, so read until one falls
  // short.
  size_t read(std::span<std::uint8_t> buffer);

  // Whether the data ended in the middle of a gzip stream. Plain files cannot tell.
  bool cut_off() const;

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };

  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace fedrun::data
