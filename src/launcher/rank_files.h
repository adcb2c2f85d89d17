// One file per rank and stream, for --output-dir: D/rank.3/stdout and D/rank.3/stderr.
#pragma once

#include <fedrun/core/file_descriptor.h>

#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

enum class RankStream { output, errors };

class RankFiles {
 public:
  // Makes the folders and empties the files. Throws UsageError that names what cannot be written.
  RankFiles(const std::filesystem::path& directory, int ranks);

  // Exactly the bytes of the rank. Throws BackendError that names the file.
  void write(int rank, RankStream stream, std::string_view bytes);

 private:
  struct File {
    std::filesystem::path name;
    FileDescriptor descriptor;
  };

  std::vector<std::array<File, 2>> files_;
};

}  // namespace fedrun::launcher
