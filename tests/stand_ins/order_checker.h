// Knows which tasks of which streams happen before which others, and who touched which memory last.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stand_in {

// How far each stream had come, by number of tasks: whatever it says has happened before.
class VectorClock {
 public:
  void advance(std::size_t stream) { ++at(stream); }
  void merge(const VectorClock& other) {
    for (std::size_t i = 0; i < other.ticks_.size(); ++i) at(i) = std::max(at(i), other.ticks_[i]);
  }
  std::uint64_t of(std::size_t stream) const { return stream < ticks_.size() ? ticks_[stream] : 0; }

 private:
  std::uint64_t& at(std::size_t stream) {
    if (ticks_.size() <= stream) ticks_.resize(stream + 1);
    return ticks_[stream];
  }
  std::vector<std::uint64_t> ticks_;
};

// Of one allocation.
class AccessHistory {
 public:
  struct Entry {
    std::size_t first;
    std::size_t end;
    bool is_write;
    std::size_t stream;
    std::uint64_t tick;
    std::string what;
  };

  // The earlier access that this one conflicts with and is not ordered after; nullptr: none.
  const Entry* find_conflict(const Entry& next, const VectorClock& clock) const {
    for (const Entry& before : entries_) {
      const bool overlaps = before.first < next.end && next.first < before.end;
      const bool is_ordered = clock.of(before.stream) >= before.tick;
      if (overlaps && (before.is_write || next.is_write) && !is_ordered) return &before;
    }
    return nullptr;
  }
  // What this one covers, and is ordered after, can be forgotten if it conflicts with no less.
  void add(const Entry& next, const VectorClock& clock) {
    std::erase_if(entries_, [&](const Entry& before) {
      return next.first <= before.first && before.end <= next.end && clock.of(before.stream) >= before.tick &&
             (next.is_write || !before.is_write);
    });
    entries_.push_back(next);
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace stand_in
