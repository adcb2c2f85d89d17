// Finds the files of a data set, and tells a user who lacks some everything at once.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::data {

// The file of this name, or of this name with .gz after it.
std::optional<std::filesystem::path> find_plain_or_gz(const std::filesystem::path& directory, std::string_view name);

// The forms in which the files of a data set are read.
enum class Packing { plain, plain_or_gz };

struct LookedFor {
  std::string name;
  bool is_found = false;
};

// Throws UsageError that lists what was found and what was not, so that one failed run is enough to learn all of it.
[[noreturn]] void fail_missing(std::string_view data_set, const std::filesystem::path& directory,
                               std::span<const LookedFor> files, std::string_view remedy,
                               Packing packing = Packing::plain_or_gz);

// All of these files, in order; fails as above when one is missing.
std::vector<std::filesystem::path> require_files(std::string_view data_set, const std::filesystem::path& directory,
                                                 std::span<const std::string> names, std::string_view remedy,
                                                 Packing packing = Packing::plain_or_gz);

}  // namespace fedrun::data
