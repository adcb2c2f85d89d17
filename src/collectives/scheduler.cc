#include <fedrun/collectives/engine.h>
#include <fedrun/collectives/scheduler.h>
#include <fedrun/core/error.h>
#include <fedrun/core/log.h>
#include <sched.h>

#include <algorithm>

namespace fedrun {
namespace {

using namespace std::chrono_literals;

// Waking a sleeping process costs some 25 µs, a flag that is being looked at 0.06 µs: look for about as long as waking
// takes.
constexpr std::chrono::microseconds spin_time = 50us;
// A message from another host takes longer, as does a GPU, and neither wakes who sleeps.
constexpr std::chrono::microseconds spin_time_for_messages = 5ms;
// How long to sleep before looking whether the others still live.
constexpr auto longest_sleep = 200ms;
constexpr auto sleep_between_looks_at_links = 1ms;
constexpr unsigned polls_between_looks_for_room = 1 << 9;
constexpr unsigned polls_between_looks_for_trouble = 1 << 14;
// An answer from another core takes fewer looks than this.
constexpr int looks_before_yield = 200;

}  // namespace

bool Scheduler::progress() {
  bool changed = false;
  for (Engine* engine : engines_) changed |= engine->progress();
  return changed;
}

bool Scheduler::must_look() const {
  return std::ranges::any_of(
      engines_, [](const Engine* engine) { return engine->waits_for_other_hosts() || engine->waits_for_device(); });
}

bool Scheduler::make_more_room() {
  bool changed = false;
  for (Engine* engine : engines_) changed |= engine->make_more_room();
  return changed;
}

void Scheduler::pause(int looks) const {
  if (options_.each_rank_has_a_core && looks < looks_before_yield && !must_look()) {
    __builtin_ia32_pause();
  } else {
    ::sched_yield();
  }
}

bool Scheduler::spin(const Flight& flight) {
  const auto patience = must_look() ? spin_time_for_messages : spin_time;
  auto enough = Clock::now() + patience;
  for (int looks = 0; looks % 32 != 0 || Clock::now() < enough; ++looks) {
    if (progress()) {
      enough = Clock::now() + patience;
      looks = 0;
    }
    if (flight.finished) return true;
    pause(looks);
  }
  return false;
}

void Scheduler::wait(const Engine& engine, const Flight& flight) {
  auto look_again = Clock::now() + longest_sleep;
  while (!flight.finished && !spin(flight)) {
    if (make_more_room()) continue;
    const std::chrono::milliseconds limit = must_look() ? sleep_between_looks_at_links : longest_sleep;
    peers_.event().sleep_until([&] { return progress() || flight.finished; }, limit);
    if (flight.finished || Clock::now() < look_again) continue;
    look_for_trouble(engine, flight);
    look_again = Clock::now() + longest_sleep;
  }
  if (warned_about_ == &flight) warned_about_ = nullptr;
}

void Scheduler::poll(const Engine& engine, const Flight& flight) {
  progress();
  if (flight.finished) return;
  if (++polls_ % polls_between_looks_for_room == 0) make_more_room();
  if (polls_ % polls_between_looks_for_trouble == 0) look_for_trouble(engine, flight);
}

void Scheduler::look_for_trouble(const Engine& engine, const Flight& flight) {
  peers_.check_alive();
  const auto waited = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - flight.submitted);
  if (options_.abort_after != 0s && waited >= options_.abort_after) {
    throw PeerLostError(engine.describe_stall(flight, waited) +
                        "; gave up as FEDRUN_STALL_ABORT_SECONDS says (0 waits for ever)");
  }
  if (options_.warn_after != 0s && waited >= options_.warn_after && warned_about_ != &flight) {
    warned_about_ = &flight;  // once is enough
    log::warn("{}", engine.describe_stall(flight, waited));
  }
}

}  // namespace fedrun
