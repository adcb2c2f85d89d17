// Knows the memory that the ranks of one host share: what allocate() handed out, and blocks through which other memory
// is staged.
#pragma once

#include <fedrun/collectives/board.h>
#include <fedrun/collectives/gather.h>
#include <fedrun/collectives/group.h>
#include <fedrun/collectives/memory.h>
#include <fedrun/collectives/peers.h>
#include <fedrun/collectives/shared_mapping.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace fedrun {

// One per process, for all its groups. One thread.
class Segments {
 public:
  explicit Segments(const Peers& peers) : peers_(peers) {}

  // Collective over the group: every rank gets `bytes` of zeroed memory that all ranks of its host have mapped.
  Memory allocate(std::size_t bytes, const Group& group, const Gather& gather);

  // Where memory of this process lies for the others of the group.
  Place place(const void* data, std::size_t bytes, const Group& group) const;

  // Where this process sees what that rank of the world has put there; nullptr for another's ordinary memory.
  std::byte* resolve(const Place& place, int world_rank);

  // How often memory was freed: what resolve() said before may be wrong after that.
  std::uint64_t freed() const { return allocations_->freed; }

  // A block of this process that the others can map. It goes back to be used again when the last owner lets go.
  struct Block {
    SharedMapping mapping;
    FileDescriptor descriptor;
    std::uint64_t number = 0;
    std::shared_ptr<void> pin{};  // of blocks for GPUs; goes before the mapping. shared: what holds it has no type here
  };
  using Pin = std::function<std::shared_ptr<void>(void* data, std::size_t bytes)>;
  using BlockLoan = std::shared_ptr<Block>;  // shared: a loan returns to the list of blocks by its deleter
  BlockLoan borrow_block(std::size_t bytes, const Pin& pin = {});
  // Never lends it again: other ranks, or a GPU, may still write to it.
  void abandon(BlockLoan block) { abandoned_.push_back(std::move(block)); }
  static Place place_of(const Block& block);

 private:
  struct Allocation {
    std::uint64_t group = 0;   // made by this group, so its descendants can use it
    std::byte* own = nullptr;  // this rank's part
    std::size_t bytes = 0;
    std::vector<SharedMapping> mappings{};  // by rank of the world; empty for those of other hosts
  };
  struct Allocations {
    std::map<std::uint64_t, Allocation> by_number;
    std::uint64_t freed = 0;
  };
  struct Blocks {
    std::vector<std::unique_ptr<Block>> free;
    std::map<std::uint64_t, Block*> lent;  // by number
  };

  const Peers& peers_;
  // Shared with the Memory objects handed out, which may outlive the communicators.
  std::shared_ptr<Allocations> allocations_ = std::make_shared<Allocations>();
  std::map<std::uint64_t, std::uint64_t> allocations_of_group_;  // so that all ranks number them alike
  std::shared_ptr<Blocks> blocks_ = std::make_shared<Blocks>();  // shared with the loans
  std::vector<BlockLoan> abandoned_;
  std::uint64_t next_block_ = 1;
  std::map<std::pair<int, std::uint64_t>, SharedMapping> blocks_of_others_;
};

}  // namespace fedrun
