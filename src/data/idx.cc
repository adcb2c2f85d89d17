#include <fedrun/core/error.h>
#include <fedrun/data/gz_file.h>
#include <fedrun/data/idx.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string>

namespace fedrun::data {
namespace {

constexpr std::uint32_t unsigned_byte_type = 0x08;
constexpr size_t first_step_bytes = 64 * 1024;

// The magic number is 0, 0, the type of the elements, the number of dimensions.
constexpr std::uint32_t magic_of(IdxContent content) {
  return unsigned_byte_type << 8 | static_cast<std::uint32_t>(content);
}

std::string_view name_of(IdxContent content) { return content == IdxContent::images ? "images" : "labels"; }

std::string describe(std::uint32_t magic) {
  for (const IdxContent content : {IdxContent::images, IdxContent::labels}) {
    if (magic == magic_of(content)) return fmt::format("idx {}", name_of(content));
  }
  const std::uint32_t type = magic >> 8;
  const std::uint32_t dimensions = magic & 0xff;
  if (type == unsigned_byte_type) return fmt::format("an idx array of {} dimensions", dimensions);
  if (type >= 0x09 && type <= 0x0e) return fmt::format("an idx array of elements that are not bytes");
  return "not an idx file";
}

// One file on its way in; keeps the path for the messages.
class IdxReader {
 public:
  IdxReader(const std::filesystem::path& path, IdxContent content) : path_(path), content_(content), file_(path) {}

  IdxArray read() {
    check_magic();
    IdxArray array;
    array.dimensions = read_dimensions();
    array.values = read_values(multiply(array.dimensions));
    check_end();
    return array;
  }

 private:
  size_t header_bytes() const { return 4 + 4 * static_cast<size_t>(content_); }

  std::uint32_t read_big_endian() {
    std::array<std::uint8_t, 4> bytes{};
    const size_t got = file_.read(bytes);
    bytes_read_ += got;
    if (got < bytes.size()) fail_truncated(fmt::format("its header alone has {} bytes", header_bytes()));
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
  }

  void check_magic() {
    const std::uint32_t found = read_big_endian();
    if (found == magic_of(content_)) return;
    throw UsageError(fmt::format("{} should hold idx {} (magic number 0x{:08x}), but starts with 0x{:08x}: {}",
                                 path_.string(), name_of(content_), magic_of(content_), found, describe(found)));
  }

  std::vector<size_t> read_dimensions() {
    std::vector<size_t> dimensions(static_cast<size_t>(content_));
    for (size_t& dimension : dimensions) dimension = read_big_endian();
    return dimensions;
  }

  size_t multiply(const std::vector<size_t>& dimensions) const {
    size_t product = 1;
    for (const size_t dimension : dimensions) {
      if (dimension != 0 && product > std::numeric_limits<size_t>::max() / 2 / dimension) {
        throw UsageError(fmt::format("{} announces {} bytes, more than any file can hold: its header is damaged",
                                     path_.string(), fmt::join(dimensions, " × ")));
      }
      product *= dimension;
    }
    return product;
  }

  std::vector<std::uint8_t> read_values(size_t count) {
    std::vector<std::uint8_t> values;
    while (values.size() < count) {
      const size_t before = values.size();
      values.resize(std::min(count, std::max(first_step_bytes, 2 * before)));
      const std::span<std::uint8_t> added = std::span(values).subspan(before);
      const size_t got = file_.read(added);
      bytes_read_ += got;
      if (got < added.size()) fail_truncated(fmt::format("its header announces {} bytes", header_bytes() + count));
    }
    return values;
  }

  // Meeting the end also makes zlib compare the checksum.
  void check_end() {
    std::array<std::uint8_t, 1> beyond{};
    if (file_.read(beyond) > 0) {
      throw UsageError(fmt::format("{} goes on after the {} bytes that its header announces: get the file again",
                                   path_.string(), bytes_read_));
    }
    if (file_.cut_off()) fail_truncated("its gzip checksum is missing");
  }

  [[noreturn]] void fail_truncated(const std::string& expectation) const {
    throw UsageError(fmt::format("{} is truncated: {}, but it ends after {}{}: get the file again", path_.string(),
                                 expectation, bytes_read_, file_.cut_off() ? " unpacked" : ""));
  }

  std::filesystem::path path_;
  IdxContent content_;
  GzFile file_;
  size_t bytes_read_ = 0;
};

}  // namespace

IdxArray read_idx(const std::filesystem::path& path, IdxContent content) { return IdxReader(path, content).read(); }

}  // namespace fedrun::data
