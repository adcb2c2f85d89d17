// The part of the engine that keeps the boards of several hosts alike.
#include <fedrun/collectives/board_records.h>
#include <fedrun/collectives/engine.h>

namespace fedrun {

void Engine::send_record(const std::vector<std::byte>& record) {
  for (int host = 0; host < group_.host_count(); ++host) {
    if (host != group_.own_host()) links_->post(group_.leader(host), record);
  }
}

bool Engine::take_records() {
  if (!links_) return false;
  // Only leaders receive any, but for everyone this is also what keeps their own messages moving.
  while (links_->take(record_)) held_[rank_of(record_)].push_back(record_);
  bool changed = false;
  for (auto& [rank, records] : held_) {
    while (!records.empty() && may_put_up(records.front())) {
      put_up(records.front(), surroundings_.board, ranks_);
      records.pop_front();
      changed = true;
    }
  }
  return changed;
}

// A rank of another host knows only that there was a slot on its own board. Rank 0 comes first in the order of held_,
// so that others find the position announced.
bool Engine::may_put_up(const std::vector<std::byte>& record) {
  const std::optional<std::uint64_t> position = position_of(record);
  if (!position) return true;
  if (rank_of(record) == 0) return has_room(*position);
  return *position < line(0).placed.load(std::memory_order_relaxed) || is_free(*position);
}

}  // namespace fedrun
