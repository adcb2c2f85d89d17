// What the process around a rank says of that rank, as the payload of frames.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace fedrun::launcher {

struct RankStart {
  std::string host;
  pid_t pid = 0;

  bool operator==(const RankStart&) const = default;
};

struct RankEnding {
  int exit_code = 0;
  int signal = 0;              // that ended it; 0: none
  bool told_to_end = false;    // mpirun had ended the run before
  bool out_of_memory = false;  // the kernel killed it for lack of memory
  std::string problem = {};    // why it could not be started; empty: it was

  bool failed() const { return exit_code != 0 || signal != 0; }
  int code_for_shells() const { return signal != 0 ? 128 + signal : exit_code; }
  bool operator==(const RankEnding&) const = default;
};

std::string to_text(const RankStart& start);
std::string to_text(const RankEnding& ending);
RankStart parse_rank_start(std::string_view text);
RankEnding parse_rank_ending(std::string_view text);

// "exited with code 3", "was ended by signal 9 (Killed)"
std::string in_words(const RankEnding& ending);

}  // namespace fedrun::launcher
