#include <fedrun/core/error.h>
#include <fedrun/launcher/bench_command.h>
#include <fedrun/launcher/exec_strings.h>
#include <fedrun/launcher/launch_plan.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace fedrun::launcher {

void become_bench_suite(const std::vector<std::string>& arguments) {
  const std::string program = std::filesystem::path(path_of_this_command()).replace_filename("bench_suite");
  std::vector<std::string> words = arguments;
  words.at(0) = program;  // in place of `bench`
  execv(program.c_str(), exec_strings(words).data());
  throw BackendError(
      fmt::format("cannot start {}: {}; a build with -DFEDRUN_EXAMPLES=ON has it. A program of yours that is called "
                  "bench is started by: fedrun -- bench",
                  program, std::strerror(errno)));
}

}  // namespace fedrun::launcher
