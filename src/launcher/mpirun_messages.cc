#include <fedrun/launcher/mpirun_messages.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace fedrun::launcher {
namespace {

constexpr std::string_view exited = "mpirun detected that one or more processes exited with non-zero status";
constexpr std::string_view signalled = "mpirun noticed that process rank ";
constexpr std::string_view left_early = "mpirun has exited due to process rank ";
constexpr std::string_view aborted = "MPI_ABORT was invoked on rank ";
constexpr std::string_view says_nothing = "Primary job  terminated normally, but ";
constexpr std::string_view daemon_ended = "ORTE was unable to reliably start one or more daemons";
constexpr std::string_view daemon_lost = "ORTE has lost communication with a remote daemon";
constexpr std::array ending_blocks = {exited, signalled, left_early, aborted, says_nothing, daemon_ended, daemon_lost};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

bool is_ruler(std::string_view line) {
  constexpr size_t dashes = 74;
  return line.size() == dashes && line.find_first_not_of('-') == std::string_view::npos;
}

bool begins_ending_block(std::string_view line) {
  return std::any_of(ending_blocks.begin(), ending_blocks.end(), [&](auto start) { return line.starts_with(start); });
}

std::optional<std::string> explain_ending_block(std::string_view block) {
  const std::string text(block);
  int rank = 0;
  int code = 0;
  char host[256] = {};
  if (text.starts_with(exited)) {
    // "  Process name: [[30140,1],2]" is rank 2 of job 1.
    const size_t process = text.find("Process name:");
    if (process == std::string::npos) return std::nullopt;
    const int found = std::sscanf(text.c_str() + process, "Process name: [[%*d,%*d],%d] Exit code: %d", &rank, &code);
    if (found == 2) return fmt::format("rank {} exited with code {}", rank, code);
  } else if (text.starts_with(signalled)) {
    const int found = std::sscanf(text.c_str() + signalled.size(), "%d with PID %*d on node %255s exited on signal %d",
                                  &rank, host, &code);
    if (found == 3) return fmt::format("rank {} on {} was ended by {}", rank, host, signal_in_words(code));
  } else if (text.starts_with(left_early)) {
    const int found = std::sscanf(text.c_str() + left_early.size(), "%d with PID %*d on node %255s", &rank, host);
    if (found == 2) {
      return fmt::format(
          "rank {} on {} left while the others were still running: it ended without MPI_Finalize, which the "
          "Session calls when it is destroyed",
          rank, host);
    }
  } else if (text.starts_with(aborted)) {
    const int found =
        std::sscanf(text.c_str() + aborted.size(), "%d in communicator MPI_COMM_WORLD with errorcode %d", &rank, &code);
    if (found == 2) return fmt::format("rank {} called MPI_Abort with code {}", rank, code);
  } else if (text.starts_with(daemon_ended) || text.starts_with(daemon_lost)) {
    return "a host could not be reached, or was lost: it is down, its network is, or mpirun's daemon was killed there; "
           "`fedrun check` tells more";
  }
  return std::nullopt;
}

bool counts_repeated_blocks(std::string_view line) {
  return line.starts_with('[') &&
         (contains(line, " sent help message help-") || contains(line, "orte_base_help_aggregate"));
}

bool is_internal_complaint(std::string_view line) {
  return line.starts_with("[warn] Epoll ") || (line.starts_with('[') && contains(line, "] ORTE_ERROR_LOG: "));
}

std::optional<RankReport> parse_rank_report(std::string_view line) {
  if (!line.starts_with(rank_report_start)) return std::nullopt;
  line.remove_prefix(rank_report_start.size());
  RankReport report{};
  const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), report.rank);
  if (problem != std::errc{}) return std::nullopt;
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  const size_t colon = line.find(": ");
  if (!line.starts_with(" on ") || colon == std::string_view::npos) return std::nullopt;
  report.error = line.substr(colon + 2);
  return report;
}

std::string signal_in_words(int signal) { return fmt::format("signal {} ({})", signal, strsignal(signal)); }

}  // namespace fedrun::launcher
