#include <fcntl.h>
#include <fedrun/core/error.h>
#include <fedrun/launcher/rank_files.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace fedrun::launcher {
namespace {

// Two files per rank soon exceed the usual limit of 1024.
void allow_many_files() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

RankFiles::RankFiles(const std::filesystem::path& directory, int ranks) {
  allow_many_files();
  const size_t digits = fmt::formatted_size("{}", ranks - 1);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto folder = directory / fmt::format("rank.{:0{}}", rank, digits);
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    if (problem) {
      throw UsageError(fmt::format("--output-dir: cannot make {}: {}", folder.string(), problem.message()));
    }
    std::array<File, 2>& pair = files_.emplace_back();
    for (const auto& [index, name] : {std::pair{0, "stdout"}, std::pair{1, "stderr"}}) {
      File& file = pair[static_cast<size_t>(index)];
      file.name = folder / name;
      file.descriptor = FileDescriptor(open(file.name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
      if (file.descriptor.get() < 0) {
        throw UsageError(fmt::format("--output-dir: cannot write {}: {}", file.name.string(), std::strerror(errno)));
      }
    }
  }
}

void RankFiles::write(int rank, RankStream stream, std::string_view bytes) {
  File& file = files_[static_cast<size_t>(rank)][stream == RankStream::output ? 0 : 1];
  while (!bytes.empty() && file.descriptor.get() >= 0) {
    const ssize_t count = ::write(file.descriptor.get(), bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR) {
      const int problem = errno;
      file.descriptor.close();  // said once
      throw BackendError(fmt::format("cannot write {}: {}", file.name.string(), std::strerror(problem)));
    }
  }
}

}  // namespace fedrun::launcher
