// Memory that a communicator hands out, so that it can reduce it where it lies.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace fedrun {

// Owns one piece of memory; the backend that made it says how it is released.
class Memory {
 public:
  Memory(void* data, std::size_t bytes, std::function<void()> release)
      : data_(data), bytes_(bytes), release_(std::move(release)) {}
  Memory(Memory&& other) noexcept
      : data_(other.data_), bytes_(other.bytes_), release_(std::exchange(other.release_, nullptr)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Memory() {
    if (release_) release_();
  }

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_;
  std::size_t bytes_;
  std::function<void()> release_;
};

// For backends without memory of their own: zeroed, aligned to a cache line.
Memory allocate_on_heap(std::size_t bytes);

}  // namespace fedrun
