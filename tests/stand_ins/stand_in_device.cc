// Device memory, which the program cannot touch, and tasks on streams.
#include "stand_ins/stand_in_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "stand_ins/stand_in_control.h"
#include "stand_ins/stand_in_machine.h"

namespace stand_in {

void put_on_stream(void* handle, const std::string& what, const std::vector<Access>& accesses,
                   std::function<void()> task) {
  Machine& all = machine();
  Stream& stream = *all.stream_of(handle);
  const std::lock_guard lock(all.mutex);
  stream.clock.merge(all.host_clock);
  stream.clock.advance(stream.index);
  for (const Access& access : accesses) {
    if (access.bytes != 0) all.check(stream, what, access);
  }
  all.put(stream, std::move(task));
}

void* seen_by_device(const void* data) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  const auto found = all.allocation_of(data);
  if (found == all.allocations.end()) return nullptr;
  return found->second.seen + (static_cast<const std::byte*>(data) - found->first);
}

void* allocate_device_memory(std::size_t bytes) {
  const std::size_t pages = (bytes + 4095) / 4096 * 4096;
  void* const address = ::mmap(nullptr, pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const seen = ::mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(seen, 0xA5, bytes);  // whoever relies on zeros shall notice
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  all.allocations[static_cast<const std::byte*>(address)] = {static_cast<std::byte*>(seen), bytes};
  control().add("allocation", 1);
  return address;
}

void unmap_device_memory(void* data) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  const auto found = all.allocations.find(static_cast<const std::byte*>(data));
  const std::size_t pages = (found->second.bytes + 4095) / 4096 * 4096;
  ::munmap(found->second.seen, pages);
  ::munmap(data, pages);
  all.allocations.erase(found);
}

bool free_device_memory(void* data) {
  Machine& all = machine();
  {
    std::unique_lock lock(all.mutex);
    if (!all.allocations.contains(static_cast<const std::byte*>(data))) return false;
    all.changed.wait(lock, [&] {
      return std::ranges::all_of(all.streams, [](Stream* stream) { return stream->tasks.empty() && !stream->is_busy; });
    });
  }
  unmap_device_memory(data);
  control().add("allocation", -1);
  return true;
}

}  // namespace stand_in
