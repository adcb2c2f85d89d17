// Memory for pieces of messages, used again and again: fresh memory costs more than what is done with it.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace fedrun {

// Hands out blocks of one size. One thread; outlives its blocks.
class MessageBlocks {
 public:
  static constexpr std::size_t block_bytes = 1024 << 10;

  // Goes back when it is destroyed.
  class Block {
   public:
    Block() = default;
    Block(MessageBlocks& owner, std::unique_ptr<std::byte[]> memory) : owner_(&owner), memory_(std::move(memory)) {}
    Block(Block&&) noexcept = default;
    Block& operator=(Block&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(memory_, other.memory_);
      return *this;
    }
    ~Block() {
      if (memory_) owner_->free_.push_back(std::move(memory_));
    }

    explicit operator bool() const { return memory_ != nullptr; }
    std::byte* data() const { return memory_.get(); }
    void leave_for_ever() { static_cast<void>(memory_.release()); }  // somebody may still write into it

   private:
    MessageBlocks* owner_ = nullptr;
    std::unique_ptr<std::byte[]> memory_;
  };

  Block take() {
    if (free_.empty()) return {*this, std::make_unique_for_overwrite<std::byte[]>(block_bytes)};
    Block block(*this, std::move(free_.back()));
    free_.pop_back();
    return block;
  }

 private:
  std::vector<std::unique_ptr<std::byte[]>> free_;
};

}  // namespace fedrun
