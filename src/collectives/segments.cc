#include <fedrun/collectives/hash.h>
#include <fedrun/collectives/segments.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace fedrun {
namespace {

constexpr std::size_t page_bytes = 4096;

std::size_t round_up_to_page(std::size_t bytes) {
  return std::max(page_bytes, (bytes + page_bytes - 1) / page_bytes * page_bytes);
}

// Blocks come in few sizes, so that they fit again.
std::size_t block_bytes(std::size_t bytes) { return std::max(page_bytes, std::bit_ceil(bytes)); }

}  // namespace

Memory Segments::allocate(std::size_t bytes, const Group& group, const Gather& gather) {
  FileDescriptor descriptor;
  SharedMapping mine = SharedMapping::create(round_up_to_page(bytes), descriptor);
  const auto handles = gather_values(gather, group.size(), mine.handle(descriptor));
  for (std::size_t rank = 0; rank < handles.size(); ++rank) {
    if (handles[rank].bytes == handles.front().bytes) continue;
    throw MismatchError(
        fmt::format("allocate: rank 0 asks for {} bytes, rank {} for {}: every rank must ask for the same",
                    handles.front().bytes, rank, handles[rank].bytes));
  }
  // The same on every rank; 56 bits, because it travels in a Place.
  const std::uint64_t number = hash_of(group.id, allocations_of_group_[group.id]++) >> 8;
  std::byte* data = mine.data();
  Allocation& allocation = allocations_->by_number[number];
  allocation.group = group.id;
  allocation.own = data;
  allocation.bytes = mine.bytes();
  allocation.mappings.resize(static_cast<std::size_t>(std::ranges::max(group.world_ranks)) + 1);
  const auto mapping_of = [&](int rank) -> SharedMapping& {
    return allocation.mappings[static_cast<std::size_t>(group.world_rank(rank))];
  };
  for (const int rank : group.neighbours()) {
    if (rank != group.rank) mapping_of(rank) = SharedMapping::open(handles[static_cast<std::size_t>(rank)]);
  }
  mapping_of(group.rank) = std::move(mine);
  gather_values(gather, group.size(), std::uint8_t{0});  // everyone has mapped: the descriptors may close
  return Memory(data, bytes, [allocations = allocations_, number] {
    allocations->by_number.erase(number);
    ++allocations->freed;
  });
}

Place Segments::place(const void* data, std::size_t bytes, const Group& group) const {
  const auto* first = static_cast<const std::byte*>(data);
  for (const auto& [number, allocation] : allocations_->by_number) {
    const bool is_inside = first >= allocation.own && first + bytes <= allocation.own + allocation.bytes;
    if (!is_inside || !group.descends_from(allocation.group)) continue;
    return {static_cast<std::uint64_t>(first - allocation.own), number, Place::How::allocated};
  }
  const bool others_look = group.neighbours().size() > 1;
  if (others_look && !peers_.can_reach_ordinary_memory()) return {0, 0, Place::How::staged};
  return {reinterpret_cast<std::uintptr_t>(data), 0, Place::How::ordinary};
}

Place Segments::place_of(const Block& block) {
  const auto size = static_cast<std::uint64_t>(std::countr_zero(block.mapping.bytes()));
  return {static_cast<std::uint64_t>(block.descriptor.get()) | size << 32, block.number, Place::How::staged};
}

std::byte* Segments::resolve(const Place& place, int world_rank) {
  switch (place.how) {
    case Place::How::allocated:
      return allocations_->by_number.at(place.segment).mappings[static_cast<std::size_t>(world_rank)].data() +
             place.offset;
    case Place::How::staged: {
      if (world_rank == peers_.rank()) return blocks_->lent.at(place.segment)->mapping.data();
      SharedMapping& mapping = blocks_of_others_[{world_rank, place.segment}];
      if (mapping.data() == nullptr) {
        const auto descriptor = static_cast<std::int64_t>(place.offset & 0xFFFFFFFF);
        mapping = SharedMapping::open({peers_.pid(world_rank), descriptor, std::int64_t{1} << (place.offset >> 32)});
      }
      return mapping.data();
    }
    case Place::How::ordinary:
      return world_rank == peers_.rank() ? reinterpret_cast<std::byte*>(place.offset) : nullptr;
    case Place::How::nowhere:
      return nullptr;
  }
  return nullptr;
}

Segments::BlockLoan Segments::borrow_block(std::size_t bytes, const Pin& pin) {
  const auto fitting = std::ranges::find_if(blocks_->free, [&](const auto& block) {
    return block->mapping.bytes() == block_bytes(bytes) && (block->pin != nullptr) == (pin != nullptr);
  });
  std::unique_ptr<Block> block;
  if (fitting != blocks_->free.end()) {
    block = std::move(*fitting);
    blocks_->free.erase(fitting);
  } else {
    block = std::make_unique<Block>();
    block->mapping = SharedMapping::create(block_bytes(bytes), block->descriptor);
    block->number = next_block_++;
    if (pin) block->pin = pin(block->mapping.data(), block->mapping.bytes());
  }
  blocks_->lent[block->number] = block.get();
  return {block.release(), [blocks = blocks_](Block* returned) {
            blocks->lent.erase(returned->number);
            blocks->free.emplace_back(returned);
          }};
}

}  // namespace fedrun
