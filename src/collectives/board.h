// The pages that all ranks of one host look at: who has arrived at which operation, with what, and which part is done.
#pragma once

#include <fedrun/collectives/hash.h>
#include <fedrun/collectives/operation.h>
#include <fedrun/collectives/shared_event.h>
#include <fedrun/collectives/shared_mapping.h>
#include <fedrun/collectives/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <unordered_map>

namespace fedrun {

// Where a rank's elements lie, as the other ranks of its host can reach them.
struct Place {
  enum class How : std::uint8_t {
    nowhere,    // no elements, or none of this rank's concern
    allocated,  // in memory from allocate(): mapped by everyone
    staged,     // copied into a block that the others map on demand
    ordinary,   // in this rank's own memory: reached through the kernel
  };
  std::uint64_t offset = 0;  // into the allocation; of a staged block, its descriptor; of ordinary memory, the address
  std::uint64_t segment : 56 = 0;  // which allocation or block
  How how : 8 = How::nowhere;

  bool operator==(const Place&) const = default;
};
static_assert(sizeof(Place) == 16);

struct Places {
  Place input;
  Place output;
  Place window;  // through which both pass where they can be reached in no other way

  bool operator==(const Places&) const = default;
};

// What a rank says about an operation when it arrives at it.
struct CallTerms {
  Collective kind = Collective::barrier;
  DataType type = DataType::u8;
  DataType wire = DataType::u8;  // the same as type: none
  ReduceOp op = ReduceOp::sum;
  std::int32_t root = 0;
  std::uint64_t count = 0;  // elements of the input
  double weight = 1;
  double prescale = 1;
  double postscale = 1;
  std::uint64_t digest = 0;  // of what else must agree: shape, the counts of all ranks, the members of a group
  // Not 0: the rank's elements lie where they lay when it last said this number, so nobody has to look for them again.
  std::uint32_t places_number = 0;
  bool is_weighted : 1 = false;
  bool is_inlined : 1 = false;  // the input is on the board itself
  bool is_named : 1 = false;
  bool is_group : 1 = false;    // the agreement about a group of operations; the input describes its members
  bool has_joined : 1 = false;  // the rank answers without bringing anything
  bool is_on_device : 1 = false;

  bool operator==(const CallTerms&) const = default;
};

// The elements of small inputs lie beside the terms, so that one look at the board is the whole operation.
inline constexpr std::size_t inline_bytes = 4096;
inline constexpr std::size_t name_bytes = 64;
// Slots on the board itself, which positions use in turn: few, so that they stay in the cache.
inline constexpr std::size_t ring_slots = 64;

// Invertible for a known position, so that a call tells its key.
inline std::uint64_t fingerprint_of(std::uint64_t key, std::uint64_t position) {
  return key ^ hash_of(position, 0x66696E676572);
}

// What one rank writes about one operation. The fingerprint says which operation it is about, and that the rest is
// there to be read: it is the hash of the operation's key and its position, so an old one never looks like a new one.
struct alignas(128) Call {  // two cache lines, because the hardware fetches them in pairs
  std::atomic<std::uint64_t> fingerprint;
  CallTerms terms;
  union {
    Places places;                        // of inputs that are too large for
    std::byte inline_data[inline_bytes];  // this
  };
  char name[name_bytes];  // cut off there; for messages
};
static_assert(offsetof(Call, inline_data) == 64);

// What one rank has done; written by it alone, or for a rank of another host by the leader of this one.
struct alignas(128) RankLine {
  std::atomic<std::uint64_t> placed;               // positions below this have, had or await a call of this rank
  std::atomic<std::uint64_t> called;               // one more than the position of its last call; for messages
  std::atomic<std::uint64_t> left;                 // this rank needs no position below this any more
  std::atomic<std::uint64_t> joins;                // how often this rank has called join(), and of the last time:
  std::atomic<std::uint64_t> joined_at;            // the position that it had come to
  std::atomic<std::int64_t> joined_at_nanosecond;  // of the clock that hosts keep in step
  std::atomic<std::uint64_t> wish;                 // the key of what it would put up, if there were room
  std::atomic<std::uint64_t> wished_at;            // one more than the position that it is for; 0: it has no wish
  std::atomic<std::uint64_t> lendings_read;        // how many it knows of
  std::atomic<std::uint64_t> turns;                // of a leader, for its whole host: numbers of turns given out
  std::atomic<std::uint64_t> gave_up_device;       // not 0: this rank will not take part on devices any more
};

// A slot beyond those of the ring that a position has got. The leader of the host writes it down, and each neighbour
// reads it once.
struct Lending {
  std::uint64_t position;
  std::uint64_t slot;
};
inline constexpr std::size_t lendings_kept = 256;
inline constexpr std::size_t most_annexes = 32;  // each is twice as large as the one before

struct alignas(128) Lendings {
  std::atomic<std::uint64_t> written;
  std::array<Lending, lendings_kept> last;  // lending number n is at n % lendings_kept
  std::array<SegmentHandle, most_annexes> annexes;
};

// A counter that belongs to one operation: the upper half says which, so that a slot can be used again without anyone
// having to reset it.
class OperationCounter {
 public:
  // Adds on behalf of this operation and returns the new value.
  std::uint32_t add(std::uint64_t position, std::uint32_t amount) {
    const std::uint64_t tag = (position + 1) << 32;
    std::uint64_t seen = value_.load(std::memory_order_relaxed);
    while (true) {
      const std::uint64_t current = (seen & 0xFFFFFFFF00000000U) == tag ? seen : tag;
      // acq_rel: the last to add sees, and passes on, what all before it wrote.
      if (value_.compare_exchange_weak(seen, current + amount, std::memory_order_acq_rel, std::memory_order_relaxed)) {
        return static_cast<std::uint32_t>(current + amount);
      }
    }
  }
  // For a rank that knows that no other changes it at the same time.
  void set(std::uint64_t position, std::uint32_t value) {
    value_.store((position + 1) << 32 | value, std::memory_order_release);  // publishes what was counted
  }
  std::uint32_t count(std::uint64_t position) const {
    const std::uint64_t seen = value_.load(std::memory_order_acquire);  // pairs with add()
    return (seen & 0xFFFFFFFF00000000U) == (position + 1) << 32 ? static_cast<std::uint32_t>(seen) : 0;
  }

 private:
  std::atomic<std::uint64_t> value_;
};

// When the turn of an operation is to use NCCL, which wants the same order on every rank.
struct Turn {
  OperationCounter claims;  // ranks that wanted to give a number to it; the first one does
  OperationCounter number;  // 1, 2, …; 0: not known yet
};

// One position's; used again for another when every rank of the host has left it.
struct alignas(128) Slot {
  OperationCounter finished;  // pieces that are done, or ranks that are through with their windows
  OperationCounter staged;    // ranks of this host whose elements on devices are in host memory
  Turn launch;
  Turn return_;  // of what goes through host memory: when it goes back to the devices
};

// How far a rank has come with one operation.
struct alignas(128) RankProgress {
  OperationCounter taken;     // chunks of this rank's portion that some rank has taken
  OperationCounter done;      // and those of them that it has finished
  OperationCounter filled;    // windows that this rank has copied its elements into
  OperationCounter combined;  // windows of which this rank has combined its slice
  // One more than the position that this rank needs no more; written where the slot is not of the ring.
  std::atomic<std::uint64_t> left;
};

// Where this process sees the slots of positions that are not on the ring. Such positions come seldom, and those that
// come after them must not pay for it: hence the limit.
class SparePlaces {
 public:
  std::byte* find(std::uint64_t position) const {
    if (position >= limit_) [[likely]]
      return nullptr;
    const auto found = bases_.find(position);
    return found == bases_.end() ? nullptr : found->second;
  }
  // Positions come in ascending order.
  void add(std::uint64_t position, std::byte* base) {
    bases_[position] = base;
    limit_ = position + 1;
  }
  void remove(std::uint64_t position) { bases_.erase(position); }

 private:
  std::unordered_map<std::uint64_t, std::byte*> bases_;
  std::uint64_t limit_ = 0;
};

// Views of the board, whose size depends on the number of ranks. Zeroed memory is a valid start.
class Board {
 public:
  Board(std::byte* base, int ranks, const SparePlaces& spare)
      : base_(base),
        ranks_(static_cast<std::size_t>(ranks)),
        ring_(base + offset_of_ring(ranks_)),
        slot_bytes_(slot_bytes(ranks)),
        spare_(&spare) {}

  static std::size_t bytes(int ranks) {
    return offset_of_ring(static_cast<std::size_t>(ranks)) + ring_slots * slot_bytes(ranks);
  }
  static std::size_t slot_bytes(int ranks) {
    const auto count = static_cast<std::size_t>(ranks);
    const std::size_t counts_bytes = 2 * count * count * sizeof(std::uint64_t);
    return sizeof(Slot) + count * (sizeof(Call) + sizeof(RankProgress)) + (counts_bytes + 127) / 128 * 128;
  }

  RankLine& line(int rank) const { return reinterpret_cast<RankLine*>(base_)[static_cast<std::size_t>(rank)]; }
  Lendings& lendings() const { return *reinterpret_cast<Lendings*>(base_ + ranks_ * sizeof(RankLine)); }
  Slot& slot(std::uint64_t position) const { return *reinterpret_cast<Slot*>(slot_base(position)); }
  Call& call(std::uint64_t position, int rank) const {
    return reinterpret_cast<Call*>(slot_base(position) + sizeof(Slot))[static_cast<std::size_t>(rank)];
  }
  RankProgress& progress(std::uint64_t position, int rank) const {
    std::byte* first = slot_base(position) + sizeof(Slot) + ranks_ * sizeof(Call);
    return reinterpret_cast<RankProgress*>(first)[static_cast<std::size_t>(rank)];
  }
  // For alltoall: the elements that this rank sends to each, then those that it expects from each.
  std::uint64_t* counts(std::uint64_t position, int rank) const {
    std::byte* first = slot_base(position) + sizeof(Slot) + ranks_ * (sizeof(Call) + sizeof(RankProgress));
    return reinterpret_cast<std::uint64_t*>(first) + 2 * ranks_ * static_cast<std::size_t>(rank);
  }
  std::uint64_t sent(std::uint64_t position, int from, int to) const { return counts(position, from)[to]; }
  std::uint64_t expected(std::uint64_t position, int by, int from) const {
    return counts(position, by)[ranks_ + static_cast<std::size_t>(from)];
  }

 private:
  static std::size_t offset_of_ring(std::size_t ranks) { return ranks * sizeof(RankLine) + sizeof(Lendings); }
  std::byte* slot_base(std::uint64_t position) const {
    if (std::byte* spare = spare_->find(position)) return spare;
    return ring_ + position % ring_slots * slot_bytes_;
  }

  std::byte* base_;
  std::size_t ranks_;
  std::byte* ring_;
  std::size_t slot_bytes_;
  const SparePlaces* spare_;
};

}  // namespace fedrun
