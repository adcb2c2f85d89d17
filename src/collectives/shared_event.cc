#include <fedrun/collectives/shared_event.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace fedrun {

void SharedEvent::notify() {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // orders what was published before the look for sleepers
  if (sleepers_.load(std::memory_order_relaxed) == 0) return;
  generation_.fetch_add(1, std::memory_order_seq_cst);
  ::syscall(SYS_futex, &generation_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void SharedEvent::wait(std::uint32_t seen, std::chrono::nanoseconds timeout) {
  timespec limit{};
  limit.tv_sec = timeout.count() / 1'000'000'000;
  limit.tv_nsec = timeout.count() % 1'000'000'000;
  ::syscall(SYS_futex, &generation_, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

}  // namespace fedrun
