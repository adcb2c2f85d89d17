// Reads the small files that users write for fedrun: hosts, flags, GPU mappings.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace fedrun::launcher {

// The whole file, which may be a pipe. Throws UsageError that calls it `what`, for one that cannot be read, is not text
// or is larger than anybody writes: such a file is not what the user meant.
std::string read_text_file(const std::filesystem::path& file, std::string_view what);

}  // namespace fedrun::launcher
