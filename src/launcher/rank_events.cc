#include <fedrun/launcher/mpirun_messages.h>
#include <fedrun/launcher/rank_events.h>
#include <fmt/format.h>

#include <cstdio>

namespace fedrun::launcher {

std::string to_text(const RankStart& start) { return fmt::format("{} {}", start.pid, start.host); }

RankStart parse_rank_start(std::string_view text) {
  RankStart start;
  int host_begins = 0;
  const std::string copy(text);
  if (std::sscanf(copy.c_str(), "%d %n", &start.pid, &host_begins) == 1) start.host = copy.substr(host_begins);
  return start;
}

std::string to_text(const RankEnding& ending) {
  return fmt::format("{} {} {:d} {:d} {}", ending.exit_code, ending.signal, ending.told_to_end, ending.out_of_memory,
                     ending.problem);
}

RankEnding parse_rank_ending(std::string_view text) {
  RankEnding ending;
  int told = 0;
  int memory = 0;
  int problem_begins = 0;
  const std::string copy(text);
  const int found =
      std::sscanf(copy.c_str(), "%d %d %d %d%n", &ending.exit_code, &ending.signal, &told, &memory, &problem_begins);
  if (found != 4) return ending;
  ending.told_to_end = told != 0;
  ending.out_of_memory = memory != 0;
  if (copy.size() > static_cast<size_t>(problem_begins)) ending.problem = copy.substr(problem_begins + 1);
  return ending;
}

std::string in_words(const RankEnding& ending) {
  if (!ending.problem.empty()) return "could not be started: " + ending.problem;
  if (ending.signal == 0) return fmt::format("exited with code {}", ending.exit_code);
  const std::string by_signal = "was ended by " + signal_in_words(ending.signal);
  if (!ending.out_of_memory) return by_signal;
  return by_signal + " because the host ran out of memory: use smaller batches, fewer ranks on it, or give it more";
}

}  // namespace fedrun::launcher
