// Reaches the elements that the ranks of this host have brought to one operation, wherever they lie.
#pragma once

#include <fedrun/collectives/board.h>
#include <fedrun/collectives/group.h>
#include <fedrun/collectives/segments.h>

#include <cstddef>
#include <vector>

namespace fedrun {

// What every run of an operation needs to know about where it runs.
struct Surroundings {
  const Group& group;
  const Peers& peers;
  Segments& segments;
  Board board;
};

// Of an operation at which every rank has arrived.
class Elements {
 public:
  Elements(const Surroundings& surroundings, std::uint64_t position) : surroundings_(surroundings) {
    look_at(position);
  }
  // Another operation, with the memory of this object.
  void look_at(std::uint64_t position);
  // Only this rank's elements, of another type than the operation's.
  void look_at_own(std::byte* memory, DataType type);
  // An operation about the same elements.
  void move_to(std::uint64_t position) { position_ = position; }

  std::size_t element_bytes() const { return element_bytes_; }
  DataType type() const { return type_; }

  // Where that rank's elements from `first` on lie; nullptr where only read_input() reaches.
  const std::byte* visible_input(int rank, std::uint64_t first) const;
  void read_input(int rank, std::uint64_t first, std::uint64_t count, void* into);
  // These elements, seen or read. What is read lies where the next call for the same rank overwrites it.
  const std::byte* input(int rank, std::uint64_t first, std::uint64_t count);

  // Does that rank of this host take a result?
  bool takes_output(int rank) const { return visible_[static_cast<std::size_t>(rank)].takes_output; }
  // Where elements from `first` on go; nullptr where only write_output() reaches.
  std::byte* output(int rank, std::uint64_t first) const;
  void write_output(int rank, std::uint64_t first, const void* data, std::uint64_t count);

 private:
  const Call& call(int rank) const { return surroundings_.board.call(position_, rank); }

  Surroundings surroundings_;
  std::uint64_t position_ = 0;
  DataType type_ = DataType::u8;
  std::size_t element_bytes_ = 1;
  // By rank, of this host: where its elements begin, if they can be seen. Looked up once, because a chunk is short.
  struct Visible {
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    bool takes_output = false;
  };
  std::vector<Visible> visible_;
};

}  // namespace fedrun
