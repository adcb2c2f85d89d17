#include <fedrun/collectives/elements.h>
#include <fedrun/collectives/peer_memory.h>
#include <fedrun/collectives/streams.h>

#include <algorithm>
#include <vector>

namespace fedrun {
namespace {

// Where other ranks' ordinary memory is copied to. One thread per process works on an operation at a time.
std::byte* scratch(std::size_t index, std::size_t bytes) {
  thread_local std::vector<std::vector<std::byte>> buffers;
  if (buffers.size() <= index) buffers.resize(index + 1);
  if (buffers[index].size() < bytes) buffers[index].resize(bytes);
  return buffers[index].data();
}

}  // namespace

void Elements::look_at(std::uint64_t position) {
  const auto& [group, peers, segments, board] = surroundings_;
  position_ = position;
  type_ = board.call(position, first_taking_part(board, position, group.size())).terms.type;
  element_bytes_ = size_of(type_);
  visible_.assign(static_cast<std::size_t>(group.size()), {});
  for (const int rank : group.neighbours()) {
    const Places& places = call(rank).places;
    const int world_rank = group.world_rank(rank);
    std::byte* input = segments.resolve(places.input, world_rank);
    const bool is_in_place = places.input == places.output;
    std::byte* output = is_in_place ? input : segments.resolve(places.output, world_rank);
    visible_[static_cast<std::size_t>(rank)] = {input, output, places.output.how != Place::How::nowhere};
  }
}

void Elements::look_at_own(std::byte* memory, DataType type) {
  type_ = type;
  element_bytes_ = size_of(type);
  std::ranges::fill(visible_, Visible{});
  visible_[static_cast<std::size_t>(surroundings_.group.rank)] = {memory, memory, memory != nullptr};
}

const std::byte* Elements::visible_input(int rank, std::uint64_t first) const {
  const std::byte* visible = visible_[static_cast<std::size_t>(rank)].input;
  return visible == nullptr ? nullptr : visible + first * element_bytes_;
}

void Elements::read_input(int rank, std::uint64_t first, std::uint64_t count, void* into) {
  const std::uint64_t address = call(rank).places.input.offset + first * element_bytes_;
  read_peer(surroundings_.peers.pid(surroundings_.group.world_rank(rank)), reinterpret_cast<const void*>(address), into,
            count * element_bytes_);
}

const std::byte* Elements::input(int rank, std::uint64_t first, std::uint64_t count) {
  if (const std::byte* visible = visible_input(rank, first)) return visible;
  std::byte* copy = scratch(static_cast<std::size_t>(rank), count * element_bytes_);
  read_input(rank, first, count, copy);
  return copy;
}

std::byte* Elements::output(int rank, std::uint64_t first) const {
  std::byte* visible = visible_[static_cast<std::size_t>(rank)].output;
  return visible == nullptr ? nullptr : visible + first * element_bytes_;
}

void Elements::write_output(int rank, std::uint64_t first, const void* data, std::uint64_t count) {
  const std::uint64_t address = call(rank).places.output.offset + first * element_bytes_;
  write_peer(surroundings_.peers.pid(surroundings_.group.world_rank(rank)), reinterpret_cast<void*>(address), data,
             count * element_bytes_);
}

}  // namespace fedrun
