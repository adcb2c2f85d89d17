#include <fedrun/collectives/board_records.h>

#include <algorithm>
#include <cstring>

namespace fedrun {
namespace {

enum class Kind : std::uint32_t { call, taken_back, join, wish, launch, gave_up_device };

struct Head {
  Kind kind = Kind::call;
  std::int32_t rank = 0;
  std::uint64_t number = 0;       // a position, or how often the rank has joined
  std::uint64_t fingerprint = 0;  // of a wish: the key; of a launch: its number
  CallTerms terms{};
  std::uint64_t joined_at = 0;
  std::int64_t joined_at_nanosecond = 0;
};

Head head_of(const Record& record) {
  Head head;
  std::memcpy(&head, record.data(), sizeof head);
  return head;
}

Record record_with(const Head& head) {
  Record record(sizeof head);
  std::memcpy(record.data(), &head, sizeof head);
  return record;
}

// The parts of a call that follow its terms, where it has them. Elements of other hosts that are not inlined are of no
// use here.
struct Part {
  void* data;
  std::size_t bytes;
};
std::vector<Part> parts_of(const Board& board, int ranks, std::uint64_t position, int rank, const CallTerms& terms) {
  Call& call = board.call(position, rank);
  std::vector<Part> parts;
  if (terms.is_inlined) parts.push_back({call.inline_data, terms.count * size_of(terms.type)});
  if (terms.is_named) parts.push_back({call.name, name_bytes});
  const std::size_t count_bytes = static_cast<std::size_t>(ranks) * sizeof(std::uint64_t);
  if (terms.kind == Collective::reduce_scatter) parts.push_back({board.counts(position, rank), count_bytes});
  if (terms.kind == Collective::alltoall) parts.push_back({board.counts(position, rank), 2 * count_bytes});
  return parts;
}

}  // namespace

std::size_t longest_record_bytes(int ranks) {
  return sizeof(Head) + inline_bytes + name_bytes + 2 * static_cast<std::size_t>(ranks) * sizeof(std::uint64_t);
}

Record record_of_call(const Board& board, int ranks, std::uint64_t position, int rank) {
  const Call& call = board.call(position, rank);
  Record record = record_with({.kind = Kind::call,
                               .rank = rank,
                               .number = position,
                               .fingerprint = call.fingerprint.load(std::memory_order_relaxed),
                               .terms = call.terms});
  for (const Part& part : parts_of(board, ranks, position, rank, call.terms)) {
    const auto* first = static_cast<const std::byte*>(part.data);
    record.insert(record.end(), first, first + part.bytes);
  }
  return record;
}

Record record_of_taken_back(std::uint64_t position, int rank) {
  return record_with({.kind = Kind::taken_back, .rank = rank, .number = position});
}

Record record_of_join(const RankLine& line, int rank) {
  Head head{.kind = Kind::join, .rank = rank, .number = line.joins.load(std::memory_order_relaxed)};
  head.joined_at = line.joined_at.load(std::memory_order_relaxed);
  head.joined_at_nanosecond = line.joined_at_nanosecond.load(std::memory_order_relaxed);
  return record_with(head);
}

Record record_of_wish(const RankLine& line, int rank) {
  return record_with({.kind = Kind::wish,
                      .rank = rank,
                      .number = line.wished_at.load(std::memory_order_relaxed),
                      .fingerprint = line.wish.load(std::memory_order_relaxed)});
}

Record record_of_launch(std::uint64_t position, std::uint32_t number, int rank) {
  return record_with({.kind = Kind::launch, .rank = rank, .number = position, .fingerprint = number});
}

Record record_of_given_up_device(int rank) { return record_with({.kind = Kind::gave_up_device, .rank = rank}); }

int rank_of(const Record& record) { return head_of(record).rank; }

std::optional<std::uint64_t> position_of(const Record& record) {
  const Head head = head_of(record);
  if (head.kind != Kind::call) return {};
  return head.number;
}

std::optional<std::uint64_t> key_of_call(const Record& record, std::uint64_t position) {
  const Head head = head_of(record);
  if (head.kind != Kind::call || head.number != position) return {};
  return fingerprint_of(head.fingerprint, position);
}

void put_up(const Record& record, const Board& board, int ranks) {
  const Head head = head_of(record);
  RankLine& line = board.line(head.rank);
  if (head.kind == Kind::join) {
    line.joined_at.store(head.joined_at, std::memory_order_relaxed);
    line.joined_at_nanosecond.store(head.joined_at_nanosecond, std::memory_order_relaxed);
    line.joins.store(head.number, std::memory_order_release);  // publishes both
    return;
  }
  if (head.kind == Kind::wish) {
    line.wish.store(head.fingerprint, std::memory_order_relaxed);
    line.wished_at.store(head.number, std::memory_order_release);  // publishes the key
    return;
  }
  if (head.kind == Kind::launch) {  // the slot is there: ranks of this host have arrived at the position
    board.slot(head.number).launch.number.set(head.number, static_cast<std::uint32_t>(head.fingerprint));
    return;
  }
  if (head.kind == Kind::gave_up_device) {
    line.gave_up_device.store(1, std::memory_order_release);
    return;
  }
  const std::uint64_t placed = line.placed.load(std::memory_order_relaxed);
  if (head.kind == Kind::taken_back) {
    for (std::uint64_t position = head.number; position < placed; ++position) {
      board.call(position, head.rank).fingerprint.store(0, std::memory_order_relaxed);
    }
    line.placed.store(std::min(placed, head.number), std::memory_order_release);
    return;
  }
  line.wished_at.store(0, std::memory_order_relaxed);  // its rank took the wish back before it wrote this
  Call& call = board.call(head.number, head.rank);
  call.terms = head.terms;
  const std::byte* next = record.data() + sizeof head;
  for (const Part& part : parts_of(board, ranks, head.number, head.rank, head.terms)) {
    std::memcpy(part.data, next, part.bytes);
    next += part.bytes;
  }
  call.fingerprint.store(head.fingerprint, std::memory_order_release);  // publishes the call
  line.called.store(head.number + 1, std::memory_order_release);        // likewise, for messages
  line.placed.store(std::max(placed, head.number + 1), std::memory_order_release);
}

}  // namespace fedrun
