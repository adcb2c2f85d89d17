#include <fedrun/launcher/mpirun_leftovers.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>

namespace fedrun::launcher {
namespace {

namespace fs = std::filesystem;

// /tmp/ompi.HOST.USER/pid.4711
bool is_working_directory(const fs::path& path) {
  return path.is_absolute() && path.filename().string().starts_with("pid.") &&
         path.parent_path().filename().string().starts_with("ompi.");
}

}  // namespace

std::vector<fs::path> mpirun_leftovers(const std::function<const char*(const char* name)>& variable) {
  std::vector<fs::path> paths;
  const char* directory = variable("PMIX_SERVER_TMPDIR");
  const char* job = variable("PMIX_NAMESPACE");
  const char* rank = variable("PMIX_RANK");
  if (directory == nullptr || job == nullptr || rank == nullptr || !is_working_directory(directory)) return paths;
  paths.emplace_back(directory);
  // The second part of the parent's name, ompi.HOST.USER, is also that of the segments.
  const std::string host_and_user = fs::path(directory).parent_path().filename().string().substr(5);
  const auto job_number = static_cast<std::uint32_t>(std::strtoul(job, nullptr, 10));
  paths.emplace_back(
      fmt::format("/dev/shm/vader_segment.{}.{:x}.{}", host_and_user, job_number, std::strtoul(rank, nullptr, 10)));
  return paths;
}

void remove_mpirun_leftovers() {
  std::error_code ignored;  // another rank may be first
  for (const fs::path& path : mpirun_leftovers([](const char* name) { return std::getenv(name); })) {
    fs::remove_all(path, ignored);
    if (is_working_directory(path)) fs::remove(path.parent_path(), ignored);  // only when no other run is in it
  }
}

}  // namespace fedrun::launcher
