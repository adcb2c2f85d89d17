#include <fedrun/core/error.h>
#include <fedrun/data/required_files.h>
#include <fmt/format.h>

namespace fedrun::data {

namespace fs = std::filesystem;

std::optional<fs::path> find_plain_or_gz(const fs::path& directory, std::string_view name) {
  for (const std::string_view ending : {"", ".gz"}) {
    fs::path candidate = directory / fmt::format("{}{}", name, ending);
    std::error_code ignored;
    if (fs::exists(candidate, ignored)) return candidate;
  }
  return std::nullopt;
}

void fail_missing(std::string_view data_set, const fs::path& directory, std::span<const LookedFor> files,
                  std::string_view remedy) {
  std::error_code ignored;
  std::string message = fs::is_directory(directory, ignored)
                            ? fmt::format("{} is not complete in {}", data_set, directory.string())
                            : fmt::format("there is no {} in {}: no such directory", data_set, directory.string());
  message += "; looked for, plain or with .gz:";
  for (const auto& [name, is_found] : files) message += fmt::format("\n  {}: {}", name, is_found ? "found" : "missing");
  throw UsageError(fmt::format("{}\n{}", message, remedy));
}

std::vector<fs::path> require_files(std::string_view data_set, const fs::path& directory,
                                    std::span<const std::string> names, std::string_view remedy) {
  std::vector<fs::path> paths;
  std::vector<LookedFor> files;
  for (const std::string& name : names) {
    const std::optional<fs::path> path = find_plain_or_gz(directory, name);
    files.push_back({name, path.has_value()});
    if (path) paths.push_back(*path);
  }
  if (paths.size() < names.size()) fail_missing(data_set, directory, files, remedy);
  return paths;
}

}  // namespace fedrun::data
