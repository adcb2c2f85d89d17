#include <fedrun/core/run_env.h>
#include <fedrun/launcher/flag_table.h>
#include <fedrun/launcher/help.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

namespace fedrun::launcher {
namespace {

constexpr size_t left_width = 30;
constexpr size_t right_width = 86;

// Breaks lines between words.
std::string two_columns(std::string_view left, std::string_view right) {
  std::string text = fmt::format("  {:{}}", left, left_width);
  if (left.size() > left_width) text += fmt::format("\n  {:{}}", "", left_width);
  while (right.size() > right_width) {
    const size_t end = right.rfind(' ', right_width);
    if (end == std::string_view::npos) break;
    text += fmt::format("  {}\n  {:{}}", right.substr(0, end), "", left_width);
    right.remove_prefix(end + 1);
  }
  return text + fmt::format("  {}\n", right);
}

std::string help_line(const Flag& flag) {
  std::string left = fmt::format("{}", fmt::join(shown_names(flag), ", "));
  if (flag.value != nullptr) left += fmt::format(" {}", flag.value);
  return two_columns(left, help_of(flag));
}

}  // namespace

std::string help_text() {
  std::string text =
      "Usage: fedrun [OPTIONS] PROGRAM [ARGUMENTS...]\n"
      "       fedrun check [OPTIONS] [PROGRAM]\n"
      "\n"
      "Runs PROGRAM as several ranks, on this machine or on several hosts, over Open MPI's mpirun.\n"
      "Options stand before PROGRAM; everything from PROGRAM on reaches it unchanged.\n"
      "'fedrun check' only checks the hosts. A program of that name is started by 'fedrun -- check'.\n"
      "\n"
      "Examples:\n"
      "  fedrun -np 2 ./train --lr 0.1             two ranks on this machine\n"
      "  fedrun -np 4 -H a:2,b:2 ./train           two ranks each on the hosts a and b\n"
      "  fedrun --hostfile hosts.txt ./train       as many ranks as the file has slots\n"
      "  fedrun -np 2 --threads 4 -x OMP_PROC_BIND=true ./train\n";
  std::string_view group;
  for (const Flag& flag : flag_table()) {
    if (group != flag.group) text += fmt::format("\n{}:\n", group = flag.group);
    text += help_line(flag);
  }
  text += "\nEnvironment variables, which options override:\n";
  for (const RunVariable& variable : run_variables()) {
    text += two_columns(variable.name,
                        fmt::format("{} ({}; default: {})", variable.meaning, variable.values, variable.fallback));
  }
  text +=
      "\nExit code: the program's; 128 + n when signal n ended it; 127 or 126 when it was not found or is not\n"
      "executable; 2 for a wrong command line.\n";
  return text;
}

}  // namespace fedrun::launcher
