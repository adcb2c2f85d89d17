// The memory through which the ranks of one stand-in communicator send each other messages. It has no name: ranks open
// it through /proc, so nothing stays behind.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace stand_in {

inline constexpr int most_ranks = 8;
inline constexpr std::size_t mailbox_bytes = 64 << 10;

// Where a process keeps the memory open.
struct SegmentHandle {
  std::int64_t pid;
  std::int64_t descriptor;  // -1: none
};

// From one rank to another, one message piece at a time.
struct Mailbox {
  std::atomic<std::uint64_t> written;  // pieces
  std::atomic<std::uint64_t> read;
  std::size_t bytes;
  std::byte data[mailbox_bytes];
};

// What a rank says at its n-th split.
struct SplitChoice {
  std::atomic<std::uint64_t> number;  // n + 1, once the choice is written
  std::atomic<std::uint64_t> opened;  // n + 1, once the handle is written, by the first rank of a new group
  int color;
  int key;
  SegmentHandle handle;
};

struct Segment {
  std::array<int, most_ranks> gpus;  // by rank, once it has joined
  std::atomic<int> joined;
  std::atomic<int> finalized;
  std::array<SplitChoice, most_ranks> choices;
  std::array<std::array<Mailbox, most_ranks>, most_ranks> mailboxes;  // [from][to]

  static SegmentHandle make() {
    const int descriptor = ::memfd_create("nccl_stand_in", MFD_CLOEXEC);
    if (descriptor < 0 || ::ftruncate(descriptor, sizeof(Segment)) != 0) return {0, -1};
    return {::getpid(), descriptor};
  }
  static Segment* open(const SegmentHandle& handle) {
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/%ld/fd/%ld", static_cast<long>(handle.pid),
                  static_cast<long>(handle.descriptor));
    const int descriptor = ::open(path.data(), O_RDWR | O_CLOEXEC);
    if (descriptor < 0) return nullptr;
    void* data = ::mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    ::close(descriptor);
    return data == MAP_FAILED ? nullptr : static_cast<Segment*>(data);
  }
};

}  // namespace stand_in
