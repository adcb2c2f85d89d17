#include <fedrun/collectives/memory.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

namespace fedrun {

Memory allocate_on_heap(std::size_t bytes) {
  constexpr std::size_t cache_line = 64;
  const std::size_t rounded = (bytes + cache_line) / cache_line * cache_line;  // never 0, so never a null pointer
  void* data = std::aligned_alloc(cache_line, rounded);
  if (data == nullptr) throw BackendError(fmt::format("cannot allocate {} bytes: the host is out of memory", bytes));
  std::memset(data, 0, rounded);
  return Memory(data, bytes, [data] { std::free(data); });
}

}  // namespace fedrun
