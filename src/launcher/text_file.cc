#include <fedrun/core/error.h>
#include <fedrun/launcher/text_file.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

namespace fedrun::launcher {
namespace {

constexpr size_t most_bytes = size_t{1} << 20;

}  // namespace

std::string read_text_file(const std::filesystem::path& file, std::string_view what) {
  const auto refuse = [&](std::string_view reason) {
    throw UsageError(fmt::format("cannot read {} {}: {}", what, file.string(), reason));
  };
  std::error_code ignored;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(std::strerror(errno));
  if (std::filesystem::is_directory(file, ignored)) refuse("it is a directory");
  std::string text(most_bytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) refuse(std::strerror(errno));
  text.resize(static_cast<size_t>(stream.gcount()));
  if (text.size() > most_bytes) refuse("it is larger than 1 MiB");
  if (text.find('\0') != std::string::npos) refuse("it is not a text file");
  return text;
}

}  // namespace fedrun::launcher
