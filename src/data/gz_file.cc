#include <fedrun/core/error.h>
#include <fedrun/data/gz_file.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <system_error>

namespace fedrun::data {
namespace {

// zlib's default of 8 KiB makes a system call for every few images.
constexpr unsigned buffer_bytes = 64 * 1024;

}  // namespace

void GzFile::Close::operator()(gzFile_s* file) const { gzclose_r(file); }

GzFile::GzFile(const std::filesystem::path& path) {
  // A directory can be opened like a file; only reading it fails, with a message that helps nobody.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw UsageError(fmt::format("{} is a directory, where a file was expected", path.string()));
  }
  errno = 0;
  file_.reset(gzopen(path.c_str(), "rbe"));
  if (!file_) {
    const int reason = errno != 0 ? errno : ENOMEM;  // zlib leaves errno alone when its own allocation fails
    throw UsageError(fmt::format("cannot open {}: {}", path.string(), std::generic_category().message(reason)));
  }
  gzbuffer(file_.get(), buffer_bytes);
}

size_t GzFile::read(std::span<std::uint8_t> buffer) {
  size_t filled = 0;
  while (filled < buffer.size()) {
    const size_t wanted = std::min<size_t>(buffer.size() - filled, std::numeric_limits<int>::max());
    const int got = gzread(file_.get(), buffer.data() + filled, static_cast<unsigned>(wanted));
    if (got < 0) {
      int problem = Z_OK;
      const std::string what = gzerror(file_.get(), &problem);  // begins with the path
      if (problem == Z_ERRNO) throw BackendError(fmt::format("cannot read {}", what));
      throw UsageError(fmt::format("damaged gzip data in {}: get the file again", what));
    }
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  return filled;
}

bool GzFile::cut_off() const {
  int problem = Z_OK;
  gzerror(file_.get(), &problem);
  return problem == Z_BUF_ERROR;
}

}  // namespace fedrun::data
