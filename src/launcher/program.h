// Finds programs the way execvp does, so that a typo is explained before anything starts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fedrun::launcher {

struct ProgramProblem {
  int exit_code;  // 127: not found, 126: found but cannot be executed, as shells have it
  std::string message;
};

// `path` is the value of PATH. Nothing is returned when the program can be started.
std::optional<ProgramProblem> find_problem(const std::string& program, std::string_view path);

// The file that would be started; a relative path stays one. Nothing when there is none.
std::optional<std::string> find_program(const std::string& program, std::string_view path);

}  // namespace fedrun::launcher
