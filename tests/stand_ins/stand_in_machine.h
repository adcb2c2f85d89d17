// Everything that the stand-in for CUDA knows: streams, which are threads, events, and memory with the accesses to it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "stand_ins/order_checker.h"
#include "stand_ins/stand_in_device.h"

namespace stand_in {

constexpr std::size_t host_index = 0;  // in vector clocks; streams come after it

struct Allocation {
  std::byte* seen = nullptr;  // by the device
  std::size_t bytes = 0;
  AccessHistory history{};
};

// One use of an event: recording it again makes another.
struct Record {
  VectorClock clock;
  bool has_happened = false;
  std::chrono::steady_clock::time_point at{};  // when it has
};

struct Stream {
  std::size_t index;
  VectorClock clock{};
  std::deque<std::function<void()>> tasks{};
  std::condition_variable has_work{};  // for its thread alone: waking all of them for each task took most of the time
  bool is_busy = false;
  bool is_ending = false;
  std::thread worker{};
};

struct Event {
  bool takes_time = false;
  std::shared_ptr<Record> record{};
};

// Never destroyed: threads of streams may outlive main(). Members that are data are for whoever has the mutex.
class Machine {
 public:
  std::mutex mutex;
  std::condition_variable changed;  // a stream has come to its end, or an event has happened
  std::map<const std::byte*, Allocation> allocations;  // by address
  std::set<Stream*> streams;
  VectorClock host_clock;

  Stream* make_stream();            // takes the mutex
  Stream* stream_of(void* handle);  // nullptr: the default one

  // All of these with the mutex.
  void put(Stream& stream, std::function<void()> task);
  void end(Stream& stream);  // when it is through
  void wait_for(Stream& stream, std::unique_lock<std::mutex>& lock);  // until it is through with all that is on it
  std::map<const std::byte*, Allocation>::iterator allocation_of(const void* data);
  void check(Stream& stream, const std::string& what, const Access& access);

 private:
  void work(Stream& stream);

  Stream* default_stream_ = nullptr;
  std::size_t next_index_ = host_index + 1;
};

Machine& machine();

// At once, whoever uses it.
void unmap_device_memory(void* data);

}  // namespace stand_in
