#include <fcntl.h>
#include <fedrun/core/file_descriptor.h>
#include <fedrun/launcher/captured_output.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <thread>

namespace fedrun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t most_bytes = size_t{8} << 20;

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

pid_t start_writing_to(int output, const std::vector<std::string>& command) {
  std::vector<char*> arguments;  // which posix_spawn does not change, whatever its signature says
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int problem = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return problem == 0 ? pid : -1;
}

// False when the end of the text did not come in time.
bool read_all(int input, Clock::time_point deadline, std::string& text) {
  std::array<char, 4096> buffer;
  while (text.size() <= most_bytes) {
    pollfd waiting = {input, POLLIN, 0};
    if (poll(&waiting, 1, milliseconds_until(deadline)) <= 0) return false;
    const ssize_t count = read(input, buffer.data(), buffer.size());
    if (count <= 0) return count == 0;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
  return false;
}

// False when it failed or had to be killed.
bool ends_well(pid_t pid, Clock::time_point deadline) {
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (Clock::now() >= deadline) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::optional<std::string> output_of(const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  const pid_t pid = start_writing_to(write_end.get(), command);
  if (pid < 0) return std::nullopt;
  write_end.close();
  std::string text;
  const bool complete = read_all(read_end.get(), deadline, text);
  if (!ends_well(pid, complete ? deadline : Clock::now()) || !complete) return std::nullopt;
  return text;
}

}  // namespace fedrun::launcher
