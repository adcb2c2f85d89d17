#include <fedrun/core/error.h>
#include <fedrun/data/png_image.h>
#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cerrno>
#include <csetjmp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <system_error>

namespace fedrun::data {
namespace {

constexpr std::size_t channels = 3;
constexpr std::size_t signature_bytes = 8;

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw UsageError(fmt::format("cannot open {}: {}", path.string(), std::generic_category().message(errno)));
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

// libpng leaves by longjmp when something is wrong, over any destructor. So what has to be freed is a member of this
// class, and the functions that libpng may leave have only locals that need no destructor.
class PngDecoder {
 public:
  explicit PngDecoder(std::span<const std::uint8_t> bytes)
      : left_(bytes), png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, keep_error, ignore_warning)) {
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) throw BackendError("libpng got no memory");
    png_set_read_fn(png_, this, read);
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  const std::string& problem() const { return problem_; }
  PngSize size() const { return {png_get_image_height(png_, info_), png_get_image_width(png_, info_)}; }

  // False: problem() says why.
  bool read_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_info(png_, info_);
    return true;
  }

  // One pixel's colours after the other. Gamma and colour profiles are left alone: the bytes are what networks are
  // trained on.
  bool read_pixels(std::span<png_bytep> rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != channels * png_get_image_width(png_, info_)) png_error(png_, "odd row size");
    png_read_image(png_, rows.data());
    png_read_end(png_, nullptr);  // compares the last checksums
    return true;
  }

 private:
  static void read(png_structp png, png_bytep to, std::size_t count) {
    auto& self = *static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (count > self.left_.size()) png_error(png, "the file ends too early");
    std::memcpy(to, self.left_.data(), count);
    self.left_ = self.left_.subspan(count);
  }
  static void keep_error(png_structp png, png_const_charp text) {
    static_cast<PngDecoder*>(png_get_error_ptr(png))->problem_ = text;
    png_longjmp(png, 1);
  }
  static void ignore_warning(png_structp, png_const_charp) {}

  std::span<const std::uint8_t> left_;
  std::string problem_;
  png_structp png_;
  png_infop info_ = nullptr;
};

[[noreturn]] void fail_damaged(const std::filesystem::path& path, const std::string& problem) {
  throw UsageError(
      fmt::format("{} is a damaged PNG file ({}): unpack the archive again, and download it again if that "
                  "does not help",
                  path.string(), problem));
}

}  // namespace

void append_png(const std::filesystem::path& path, const PngSize& size, std::vector<std::uint8_t>& pixels) {
  const std::vector<std::uint8_t> bytes = bytes_of(path);
  if (png_sig_cmp(bytes.data(), 0, std::min(bytes.size(), signature_bytes)) != 0 || bytes.size() < signature_bytes) {
    throw UsageError(fmt::format("{} is not a PNG file, of which it has the name ({} bytes): unpack the archive again",
                                 path.string(), bytes.size()));
  }
  PngDecoder decoder(bytes);
  if (!decoder.read_header()) fail_damaged(path, decoder.problem());
  if (decoder.size().rows != size.rows || decoder.size().columns != size.columns) {
    throw UsageError(fmt::format("{} has {} × {} pixels, where {} × {} were expected: is it of another data set?",
                                 path.string(), decoder.size().rows, decoder.size().columns, size.rows, size.columns));
  }
  const std::size_t plane = size.rows * size.columns;
  std::vector<std::uint8_t> colours(channels * plane);
  std::vector<png_bytep> rows;
  for (std::size_t row = 0; row < size.rows; ++row) rows.push_back(&colours[row * channels * size.columns]);
  if (!decoder.read_pixels(rows)) fail_damaged(path, decoder.problem());
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t i = 0; i < plane; ++i) pixels.push_back(colours[channels * i + channel]);
  }
}

}  // namespace fedrun::data
