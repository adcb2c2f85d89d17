// Memory whose end is the end of what may be touched, so that a kernel that reads or writes too far is caught.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace fedrun {

// An area ends where an inaccessible page begins. Bytes around the place that is handed out carry a pattern.
class GuardedMemory {
 public:
  GuardedMemory() {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = (smallest_bytes + page - 1) / page * page;
    mapped_bytes_ = bytes_ + page;
    void* area = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) throw std::runtime_error("mmap failed");
    begin_ = static_cast<std::byte*>(area);
    if (mprotect(begin_ + bytes_, page, PROT_NONE) != 0) throw std::runtime_error("mprotect failed");
  }
  ~GuardedMemory() { munmap(begin_, mapped_bytes_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // A place of that size, `slack` bytes before the inaccessible page; the rest gets the pattern.
  std::byte* place(std::size_t bytes, std::size_t slack) {
    std::fill_n(begin_, bytes_, pattern);
    place_end_ = begin_ + bytes_ - slack;
    place_ = place_end_ - bytes;
    return place_;
  }

  bool is_intact_around_place() const {
    const auto is_pattern = [](std::byte byte) { return byte == pattern; };
    return std::all_of(begin_, place_, is_pattern) && std::all_of(place_end_, begin_ + bytes_, is_pattern);
  }

 private:
  static constexpr std::byte pattern{0xA5};
  static constexpr std::size_t smallest_bytes = 10'000;
  std::size_t bytes_ = 0;
  std::size_t mapped_bytes_ = 0;
  std::byte* begin_ = nullptr;
  std::byte* place_ = nullptr;
  std::byte* place_end_ = nullptr;
};

}  // namespace fedrun
