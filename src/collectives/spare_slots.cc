#include <fedrun/collectives/spare_slots.h>

#include <algorithm>
#include <bit>

namespace fedrun {
namespace {

constexpr std::uint64_t first_annex_slots = 64;
constexpr std::uint64_t no_position = ~std::uint64_t{0};

std::uint64_t slots_of_annex(std::size_t number) { return first_annex_slots << number; }
std::uint64_t first_slot_of_annex(std::size_t number) { return slots_of_annex(number) - first_annex_slots; }
std::size_t annex_of_slot(std::uint64_t slot) {
  return static_cast<std::size_t>(std::bit_width(slot / first_annex_slots + 1)) - 1;
}

}  // namespace

SpareSlots::SpareSlots(std::byte* board, const Group& group) : group_(group), board_(board, group.size(), places_) {}

bool SpareSlots::lend(std::uint64_t position) {
  if (places_.find(position) != nullptr) return true;
  if (!everyone_has_read()) return false;
  const Lending lending{position, take_slot()};
  lent_.push_back(lending);
  learn(lending);
  Lendings& lendings = board_.lendings();
  lendings.last[lendings_known_ % lendings_kept] = lending;
  lendings.written.store(++lendings_known_, std::memory_order_release);  // publishes the lending and its annex
  return true;
}

// Else the next lending would take the place of one that somebody still needs.
bool SpareSlots::everyone_has_read() {
  if (lendings_known_ - lendings_read_by_all_ < lendings_kept) return true;
  lendings_read_by_all_ = lendings_known_;
  for (const int rank : group_.neighbours()) {
    if (rank == group_.rank) continue;
    const std::uint64_t read = board_.line(rank).lendings_read.load(std::memory_order_acquire);  // after it has read
    lendings_read_by_all_ = std::min(lendings_read_by_all_, read);
  }
  return lendings_known_ - lendings_read_by_all_ < lendings_kept;
}

std::uint64_t SpareSlots::take_slot() {
  if (free_.empty() && lent_.size() >= collect_at_) collect_slots();
  if (free_.empty()) {
    make_annexes_for(slots_);
    return slots_++;
  }
  const std::uint64_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void SpareSlots::collect_slots() {
  std::erase_if(lent_, [&](const Lending& lending) {
    if (!is_left_by_all(lending.position)) return false;
    free_.push_back(lending.slot);
    return true;
  });
  collect_at_ = std::max(ring_slots, 2 * lent_.size());  // so that on average each lending is looked at once or twice
}

bool SpareSlots::is_left_by_all(std::uint64_t position) const {
  return std::ranges::all_of(group_.neighbours(), [&](int rank) {
    // acquire: its last look at the slot came before
    return board_.line(rank).left.load(std::memory_order_acquire) > position ||
           board_.progress(position, rank).left.load(std::memory_order_acquire) == position + 1;
  });
}

void SpareSlots::make_annexes_for(std::uint64_t slot) {
  while (annexes_.size() <= annex_of_slot(slot)) {
    const std::uint64_t bytes = slots_of_annex(annexes_.size()) * Board::slot_bytes(group_.size());
    Annex annex;
    annex.mapping = SharedMapping::create(bytes, annex.descriptor, SharedMapping::Pages::on_demand);
    board_.lendings().annexes[annexes_.size()] = annex.mapping.handle(annex.descriptor);
    annexes_.push_back(std::move(annex));
  }
}

std::byte* SpareSlots::base_of(std::uint64_t slot) {
  const std::size_t number = annex_of_slot(slot);
  if (annexes_.size() <= number) annexes_.resize(number + 1);
  SharedMapping& mapping = annexes_[number].mapping;
  if (mapping.data() == nullptr) {
    mapping = SharedMapping::open(board_.lendings().annexes[number], SharedMapping::Pages::on_demand);
  }
  return mapping.data() + (slot - first_slot_of_annex(number)) * Board::slot_bytes(group_.size());
}

void SpareSlots::learn(const Lending& lending) {
  if (position_of_slot_.size() <= lending.slot) position_of_slot_.resize(lending.slot + 1, no_position);
  places_.remove(std::exchange(position_of_slot_[lending.slot], lending.position));
  places_.add(lending.position, base_of(lending.slot));
}

void SpareSlots::read_lendings() {
  const Lendings& lendings = board_.lendings();
  const std::uint64_t written = lendings.written.load(std::memory_order_acquire);  // pairs with lend()
  if (lendings_known_ == written) return;
  while (lendings_known_ < written) learn(lendings.last[lendings_known_++ % lendings_kept]);
  // release: what was read may be overwritten now
  board_.line(group_.rank).lendings_read.store(lendings_known_, std::memory_order_release);
}

void SpareSlots::leave(std::uint64_t position) {
  if (places_.find(position) == nullptr) return;
  board_.progress(position, group_.rank).left.store(position + 1, std::memory_order_release);  // after our last look
}

}  // namespace fedrun
