// Lets the ranks of one host wait for each other without polling: a rank that finds nothing to do sleeps on a futex.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace fedrun {

// Lies in shared memory, zero-initialised. Any process may wait or notify.
//
// The waiter announces itself, then looks again, then sleeps; the notifier publishes, then looks for waiters. Both have
// a sequentially consistent fence between their store and their load, so at least one of them sees the other.
class SharedEvent {
 public:
  // Call after publishing what others may wait for. Costs one fence while nobody sleeps.
  void notify();

  // Returns true when ready() holds, false after `timeout`. ready() is called again after every notify().
  template <typename Ready>
  bool sleep_until(Ready ready, std::chrono::milliseconds timeout) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    bool is_ready = false;
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (true) {
      const std::uint32_t seen = generation_.load(std::memory_order_seq_cst);
      is_ready = ready();
      const auto left = deadline - std::chrono::steady_clock::now();
      if (is_ready || left <= std::chrono::nanoseconds(0)) break;
      wait(seen, left);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return is_ready;
  }

 private:
  void wait(std::uint32_t seen, std::chrono::nanoseconds timeout);

  std::atomic<std::uint32_t> generation_;
  std::atomic<std::uint32_t> sleepers_;
};

}  // namespace fedrun
