#include <fedrun/launcher/program.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace fedrun::launcher {
namespace {

namespace fs = std::filesystem;

enum class Verdict { missing, not_a_file, not_executable, executable };

Verdict examine(const std::string& file) {
  std::error_code ignored;
  const fs::file_status status = fs::status(file, ignored);
  if (!fs::exists(status)) return Verdict::missing;
  if (!fs::is_regular_file(status)) return Verdict::not_a_file;
  return access(file.c_str(), X_OK) == 0 ? Verdict::executable : Verdict::not_executable;
}

struct Found {
  Verdict verdict = Verdict::missing;
  std::string file;
};

// Like execvp: the first executable file wins; one that cannot be executed is only remembered.
Found search(const std::string& name, std::string_view path) {
  Found best;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string directory{path.substr(begin, end - begin)};
    const std::string file = (directory.empty() ? "." : directory) + "/" + name;  // an empty entry means here
    const Verdict verdict = examine(file);
    if (verdict == Verdict::executable) return {verdict, file};
    if (verdict == Verdict::not_executable && best.verdict == Verdict::missing) best = {verdict, file};
    begin = end + 1;
  }
  return best;
}

bool is_by_path(const std::string& program) { return program.find('/') == std::string::npos; }

Found locate(const std::string& program, std::string_view path) {
  return is_by_path(program) ? search(program, path) : Found{examine(program), program};
}

}  // namespace

std::optional<std::string> find_program(const std::string& program, std::string_view path) {
  Found found = locate(program, path);
  if (found.verdict != Verdict::executable) return std::nullopt;
  return std::move(found.file);
}

std::optional<ProgramProblem> find_problem(const std::string& program, std::string_view path) {
  const bool by_path = is_by_path(program);
  const Found found = locate(program, path);
  switch (found.verdict) {
    case Verdict::executable:
      return std::nullopt;
    case Verdict::not_a_file:
      return ProgramProblem{126, fmt::format("{} is not a program but a directory or a device", found.file)};
    case Verdict::not_executable:
      return ProgramProblem{
          126, fmt::format("{} is not executable; if it is a program: chmod +x {}", found.file, found.file)};
    case Verdict::missing:
      break;
  }
  if (!by_path)
    return ProgramProblem{127, fmt::format("{} does not exist (looked in {})", program, fs::current_path().string())};
  if (examine("./" + program) == Verdict::executable) {
    return ProgramProblem{127, fmt::format("{} is not on PATH; did you mean ./{}?", program, program)};
  }
  return ProgramProblem{127, fmt::format("{} is not on PATH; write its path, such as build/bin/{}", program, program)};
}

}  // namespace fedrun::launcher
