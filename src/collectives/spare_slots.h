// Slots beyond those of the board's ring, so that an operation that must wait for long does not stop those behind it.
#pragma once

#include <fedrun/collectives/board.h>
#include <fedrun/collectives/group.h>
#include <fedrun/collectives/shared_mapping.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fedrun {

// The leader of a host lends a slot to a position before anyone can know of the position, and writes that down on the
// board; its neighbours read it there. A slot is lent again when all of them have left the position. Slots lie in
// annexes, which the leader makes when it needs them.
//
// One thread at a time.
class SpareSlots {
 public:
  // `board` is mapped by every rank of the host.
  SpareSlots(std::byte* board, const Group& group);
  SpareSlots(const SpareSlots&) = delete;
  SpareSlots& operator=(const SpareSlots&) = delete;

  // The board with these slots.
  const Board& board() const { return board_; }

  // For the leader; in ascending order of positions. False: neighbours have yet to read of the lendings before.
  bool lend(std::uint64_t position);
  // For the others: learns of what was lent for the positions that they have seen announced.
  void read_lendings();
  // This rank needs the position no more. Nothing happens if it is on the ring.
  void leave(std::uint64_t position);

 private:
  struct Annex {
    SharedMapping mapping{};
    FileDescriptor descriptor{};  // of the leader: open as long as neighbours may come to map it
  };

  bool everyone_has_read();
  std::uint64_t take_slot();
  void collect_slots();
  bool is_left_by_all(std::uint64_t position) const;
  void make_annexes_for(std::uint64_t slot);
  std::byte* base_of(std::uint64_t slot);
  void learn(const Lending& lending);

  const Group& group_;
  SparePlaces places_;
  Board board_;
  std::vector<Annex> annexes_;
  std::vector<std::uint64_t> position_of_slot_;  // the last that this rank has learnt of
  std::uint64_t lendings_known_ = 0;             // how many lendings this rank has written or read

  // Of the leader only.
  std::uint64_t lendings_read_by_all_ = 0;
  std::uint64_t slots_ = 0;  // that there are
  std::vector<std::uint64_t> free_;
  std::vector<Lending> lent_;
  std::size_t collect_at_ = ring_slots;  // lendings, before it is worth to look for slots that were left
};

}  // namespace fedrun
