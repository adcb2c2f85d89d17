// A device that is made of threads: each stream is one, and its memory is hidden from the program. Shared by the
// stand-ins for CUDA and NCCL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace stand_in {

// What a task on a stream reads or writes, by the addresses that the program knows.
struct Access {
  const void* data;
  std::size_t bytes;
  bool is_write;
};

// Puts a task on a stream (nullptr: the default one). Reports accesses that are not ordered after earlier ones of other
// streams by events, or by the host's having waited, and those outside of device memory.
void put_on_stream(void* stream, const std::string& what, const std::vector<Access>& accesses,
                   std::function<void()> task);

// Where the device itself sees memory of these addresses; nullptr: nowhere.
void* seen_by_device(const void* data);

int current_gpu();  // of this thread

void* allocate_device_memory(std::size_t bytes);
bool free_device_memory(void* data);  // waits for the device

}  // namespace stand_in
