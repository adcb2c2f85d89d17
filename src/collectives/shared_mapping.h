// Memory that several processes of one host see, without a name: nothing is left in /dev/shm whoever dies, and however.
#pragma once

#include <fedrun/core/file_descriptor.h>

#include <cstddef>
#include <cstdint>

namespace fedrun {

// What another process of the same user needs to map a segment: the owner's process and file descriptor.
struct SegmentHandle {
  std::int64_t pid = 0;
  std::int64_t descriptor = -1;
  std::int64_t bytes = 0;
  std::int64_t address = 0;  // in the owner's process
};

// One mapping of shared memory; unmapped by the destructor. The memory itself lives as long as any process maps it.
class SharedMapping {
 public:
  enum class Pages {
    populated,  // fills the page tables now, so that no reduction pays for page faults
    on_demand,  // takes memory only where it is used
  };

  SharedMapping() = default;
  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&& other) noexcept;
  ~SharedMapping();

  // New zeroed memory. Keep `descriptor` open until the others have mapped it.
  static SharedMapping create(std::size_t bytes, FileDescriptor& descriptor, Pages pages = Pages::populated);
  // Memory that someone created and whose descriptor they still hold open. Ranks that are threads of one process share
  // one mapping, which outlives what open() returns.
  static SharedMapping open(const SegmentHandle& handle, Pages pages = Pages::populated);

  SegmentHandle handle(const FileDescriptor& descriptor) const;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  SharedMapping(int descriptor, std::size_t bytes, Pages pages);

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool owns_mapping_ = true;
};

}  // namespace fedrun
