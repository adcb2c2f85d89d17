// Threads stand in for processes here, so that ThreadSanitizer sees every access.
#include <fedrun/collectives/shared_event.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

namespace fedrun {
namespace {

using namespace std::chrono_literals;

TEST(SharedEvent, WakesASleeper) {
  const auto event = std::make_unique<SharedEvent>();
  std::atomic<bool> is_ready = false;
  std::thread waker([&] {
    std::this_thread::sleep_for(20ms);
    is_ready.store(true, std::memory_order_release);
    event->notify();
  });
  EXPECT_TRUE(event->sleep_until([&] { return is_ready.load(std::memory_order_acquire); }, 10s));
  waker.join();
}

TEST(SharedEvent, GivesUpAfterTheTimeout) {
  const auto event = std::make_unique<SharedEvent>();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(event->sleep_until([] { return false; }, 20ms));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms);
}

TEST(SharedEvent, NeverLosesANotification) {
  // Two threads hand a number to and fro; one lost notification would cost a whole timeout and fail the test.
  const auto event = std::make_unique<SharedEvent>();
  std::atomic<int> turn = 0;
  constexpr int rounds = 2000;
  const auto play = [&](int side) {
    for (int i = side; i < rounds; i += 2) {
      ASSERT_TRUE(event->sleep_until([&] { return turn.load(std::memory_order_acquire) == i; }, 10s)) << "turn " << i;
      turn.store(i + 1, std::memory_order_release);
      event->notify();
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  EXPECT_EQ(turn.load(), rounds);
}

}  // namespace
}  // namespace fedrun
