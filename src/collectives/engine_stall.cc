// The part of the engine that says what an operation is waiting for.
#include <fedrun/collectives/disagreement.h>
#include <fedrun/collectives/engine.h>
#include <fedrun/collectives/host.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fedrun {

std::string Engine::describe_last(int rank) const {
  const std::uint64_t called = line(rank).called.load(std::memory_order_acquire);
  const std::string state = host_->peers.state(group_.world_rank(rank));
  if (called == 0) return fmt::format("rank {} has called nothing ({})", rank, state);
  return fmt::format("rank {} last called operation {}, {} ({})", rank, called - 1,
                     describe_call(call(called - 1, rank)), state);
}

std::string Engine::describe_missing(std::uint64_t position) const {
  std::vector<int> missing;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!has_arrived(position, rank)) missing.push_back(rank);
  }
  if (missing.empty()) return "every rank has called it, and one of them does not carry out its part";
  return fmt::format("missing: rank{} {}", missing.size() > 1 ? "s" : "", fmt::join(missing, ", "));
}

std::string Engine::describe_stall(const Flight& flight, std::chrono::seconds waited) const {
  const std::string& name = flight.operation.name;
  const bool has_position = flight.position != Flight::no_position;
  std::string text =
      fmt::format("rank {} has waited {} s for operation {}of its group of {}: {}{}; ", rank_, waited.count(),
                  has_position ? fmt::format("{} ", flight.position) : "", ranks_, to_string(flight.operation.kind),
                  name.empty() ? "" : fmt::format(" named '{}'", name));
  if (has_position && flight.position >= settled_) {
    text += "rank 0 has not called it";
  } else if (has_position) {
    text += describe_missing(flight.position);
  } else if (rank_ == 0 && flight.operation.kind != Collective::join) {
    const std::uint64_t oldest = line(rank_).left.load(std::memory_order_relaxed);
    text += fmt::format("those before it come first, from operation {} on; that one is {}, {}", oldest,
                        describe_call(call(oldest, 0)), describe_missing(oldest));
  } else {
    text += flight.operation.kind == Collective::join ? "not every rank has joined" : "rank 0 has not called it";
  }
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank != rank_) text += "; " + describe_last(rank);
  }
  return text;
}

}  // namespace fedrun
