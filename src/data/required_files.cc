#include <fedrun/core/error.h>
#include <fedrun/data/required_files.h>
#include <fmt/format.h>

#include <utility>

namespace fedrun::data {

namespace fs = std::filesystem;

namespace {

std::optional<fs::path> find_file(const fs::path& directory, std::string_view name) {
  fs::path candidate = directory / name;
  std::error_code ignored;
  return fs::exists(candidate, ignored) ? std::optional(std::move(candidate)) : std::nullopt;
}

}  // namespace

std::optional<fs::path> find_plain_or_gz(const fs::path& directory, std::string_view name) {
  const std::optional<fs::path> plain = find_file(directory, name);
  return plain ? plain : find_file(directory, fmt::format("{}.gz", name));
}

void fail_missing(std::string_view data_set, const fs::path& directory, std::span<const LookedFor> files,
                  std::string_view remedy, Packing packing) {
  std::error_code ignored;
  std::string message = fs::is_directory(directory, ignored)
                            ? fmt::format("{} is not complete in {}", data_set, directory.string())
                            : fmt::format("there is no {} in {}: no such directory", data_set, directory.string());
  message += packing == Packing::plain ? "; looked for:" : "; looked for, plain or with .gz:";
  for (const auto& [name, is_found] : files) message += fmt::format("\n  {}: {}", name, is_found ? "found" : "missing");
  throw UsageError(fmt::format("{}\n{}", message, remedy));
}

std::vector<fs::path> require_files(std::string_view data_set, const fs::path& directory,
                                    std::span<const std::string> names, std::string_view remedy, Packing packing) {
  std::vector<fs::path> paths;
  std::vector<LookedFor> files;
  for (const std::string& name : names) {
    const auto path = packing == Packing::plain ? find_file(directory, name) : find_plain_or_gz(directory, name);
    files.push_back({name, path.has_value()});
    if (path) paths.push_back(*path);
  }
  if (paths.size() < names.size()) fail_missing(data_set, directory, files, remedy, packing);
  return paths;
}

}  // namespace fedrun::data
