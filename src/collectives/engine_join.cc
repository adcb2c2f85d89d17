// The part of the engine that lets a rank without data answer for itself until all have joined.
#include <fedrun/collectives/board_records.h>
#include <fedrun/collectives/engine.h>
#include <fedrun/collectives/host.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace fedrun {

void Engine::begin_join() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  line(rank_).joined_at.store(next_, std::memory_order_relaxed);
  line(rank_).joined_at_nanosecond.store(std::chrono::nanoseconds(now).count(), std::memory_order_relaxed);
  line(rank_).joins.store(++joins_, std::memory_order_release);  // publishes both
  if (links_) send_record(record_of_join(line(rank_), rank_));
  host_->peers.event().notify();  // rank 0 waits for this, and nothing else may tell it
}

bool Engine::everyone_has_joined() const { return first_not_joined() == ranks_; }

int Engine::first_not_joined() const {
  int rank = 0;
  while (rank < ranks_ && line(rank).joins.load(std::memory_order_acquire) >= joins_) ++rank;
  return rank;
}

// Whoever took part in more operations came later; where that is equal, the clock decides.
int Engine::last_to_join() const {
  const auto when = [&](int rank) {
    return std::pair(line(rank).joined_at.load(std::memory_order_relaxed),
                     line(rank).joined_at_nanosecond.load(std::memory_order_relaxed));
  };
  int last = 0;
  for (int rank = 1; rank < ranks_; ++rank) {
    if (when(rank) > when(last)) last = rank;
  }
  return last;
}

// While rank 0 has nothing to submit, the lowest rank that has not joined sets the order.
bool Engine::answer_for_rank_0() {
  const int speaker = first_not_joined();
  if (speaker == ranks_) return false;
  bool changed = false;
  while (const std::optional<std::uint64_t> key = key_wanted_by(speaker)) {
    // A guess that its rank will take back as soon as it sees that rank 0 has this operation elsewhere.
    const bool is_outdated =
        std::ranges::any_of(placed_, [&](const FlightPointer& flight) { return flight->key == *key; });
    if (is_outdated || !has_room(next_)) break;
    put_answer(next_, *key);
    advance_next(next_ + 1);
    changed = true;
  }
  return changed;
}

// For the next position: its guess, which may still lie among the records for want of room, or its wish.
std::optional<std::uint64_t> Engine::key_wanted_by(int rank) const {
  const RankLine& theirs = line(rank);
  if (theirs.placed.load(std::memory_order_acquire) > next_) return key_at(next_, rank);
  if (const auto held = held_.find(rank); held != held_.end()) {
    for (const Record& record : held->second) {
      if (const auto key = key_of_call(record, next_)) return key;
    }
  }
  if (theirs.wished_at.load(std::memory_order_acquire) != next_ + 1) return {};  // pairs with wish_for()
  return theirs.wish.load(std::memory_order_relaxed);
}

void Engine::put_answer(std::uint64_t position, std::uint64_t key) {
  auto flight = std::make_shared<Flight>(Operation{}, key, position);
  flight->is_answer = true;
  call(position, rank_).places = {};
  publish_call(flight->operation, {.has_joined = true}, key, position);
  placed_.push_back(std::move(flight));
}

// Rank 0 has said in its call who was the last.
void Engine::end_join(Flight& flight) {
  ++joins_finished_;
  unnamed_ = 0;
  *static_cast<std::int32_t*>(flight.operation.output.data) =
      static_cast<std::int32_t>(call(flight.position, 0).terms.weight);
}

}  // namespace fedrun
