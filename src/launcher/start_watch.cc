#include <fedrun/launcher/start_watch.h>
#include <fmt/format.h>

#include <algorithm>

namespace fedrun::launcher {
namespace {

constexpr std::chrono::seconds usual_limit{120};  // a large program on a slow network file system takes its time

bool all_up(const RunRecord& record) {
  return std::all_of(record.ranks.begin(), record.ranks.end(), [](const auto& rank) { return rank.has_come_up(); });
}

bool all_started(const RunRecord& record) {
  return std::all_of(record.ranks.begin(), record.ranks.end(), [](const auto& rank) { return rank.started; });
}

// A first rank that connects shows that the program is one of fedrun's, so the others should follow.
bool uses_fedrun(const RunRecord& record) {
  return std::any_of(record.ranks.begin(), record.ranks.end(), [](const auto& rank) { return rank.begun; });
}

}  // namespace

std::optional<RunClock::time_point> StartWatch::deadline(const RunRecord& record) const {
  if (limit_) return record.started_at + *limit_;
  return all_started(record) ? std::nullopt : std::optional(record.started_at + usual_limit);
}

std::optional<RunClock::time_point> StartWatch::next(const RunRecord& record) const {
  if (all_up(record)) return std::nullopt;
  const auto limit = deadline(record);
  if (!limit && !uses_fedrun(record)) return std::nullopt;
  return std::min(limit.value_or(RunClock::time_point::max()), record.started_at + next_progress_);
}

std::string StartWatch::progress(const RunRecord& record, RunClock::time_point now) {
  if (now < record.started_at + next_progress_) return {};
  const auto waited = std::chrono::floor<std::chrono::seconds>(now - record.started_at);
  next_progress_ = waited + std::max<std::chrono::seconds>(waited, std::chrono::seconds(5));
  std::string text = fmt::format("fedrun: waiting for the ranks to come up, {} s so far:", waited.count());
  for (size_t begin = 0; begin < record.ranks.size();) {
    const std::string& host = record.ranks[begin].host;
    size_t end = begin;
    int started = 0;
    int up = 0;
    for (; end < record.ranks.size() && record.ranks[end].host == host; ++end) {
      started += record.ranks[end].started ? 1 : 0;
      up += record.ranks[end].has_come_up() ? 1 : 0;
    }
    text += fmt::format("{} {}: {} of {} started, {} connected", begin == 0 ? "" : ";", host, started, end - begin, up);
    begin = end;
  }
  return text + "\n";
}

std::optional<std::string> StartWatch::problem(const RunRecord& record, RunClock::time_point now) const {
  const auto limit = deadline(record);
  if (!limit || now < *limit || all_up(record)) return std::nullopt;
  const auto waited = std::chrono::floor<std::chrono::seconds>(now - record.started_at).count();
  const auto not_started = ranks_that(record, [](const RankRecord& rank) { return !rank.started; });
  if (!not_started.empty()) {
    return fmt::format(
        "{} did not start within {} s: is the host busy or its network slow? `fedrun check` tells more; "
        "--start-timeout gives them longer",
        by_host(record, not_started), waited);
  }
  const auto not_begun = ranks_that(record, [](const RankRecord& rank) { return !rank.begun && !rank.ending; });
  if (!not_begun.empty()) {
    return fmt::format(
        "{} started, but made no fedrun::Session within {} s: what does the program do before? "
        "--debug-rank {} shows it; --start-timeout gives it longer",
        by_host(record, not_begun), waited, not_begun[0]);
  }
  const auto not_joined = ranks_that(record, [](const RankRecord& rank) { return !rank.has_come_up(); });
  return fmt::format(
      "{} could not connect to the others within {} s: a firewall, or the wrong network; "
      "`fedrun check` shows the networks, --network-interfaces chooses one",
      by_host(record, not_joined), waited);
}

}  // namespace fedrun::launcher
