// What mpirun 4.1 and fedrun's ranks write to standard error when a run goes wrong, and what it means.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fedrun::launcher {

// Lines are given without their newline.

// mpirun sets its messages between two lines of dashes; what stands between them is a block.
bool is_ruler(std::string_view line);

// True for the first line of a block that says no more than explain_ending_block does. Other blocks are shown.
bool begins_ending_block(std::string_view line);

// What such a block says, such as "rank 1 on a exited with code 3".
std::optional<std::string> explain_ending_block(std::string_view block);

// "2 more processes have sent help message ...": mpirun counts blocks that it did not print.
bool counts_repeated_blocks(std::string_view line);

// mpirun's complaints about itself, which it also makes when it has to end ranks quickly.
bool is_internal_complaint(std::string_view line);

// The first line of an error that a rank reports: "fedrun: rank R on HOST: KIND: message". More lines of the message
// follow indented by two spaces.
struct RankReport {
  int rank;
  std::string_view error;  // "KIND: message"
};
constexpr std::string_view rank_report_start = "fedrun: rank ";
std::optional<RankReport> parse_rank_report(std::string_view line);

// "signal 9 (Killed)"
std::string signal_in_words(int signal);

}  // namespace fedrun::launcher
