// Waits for one operation while working on all of them: whoever waits, works, and nobody polls for long.
#pragma once

#include <fedrun/collectives/flight.h>
#include <fedrun/collectives/peers.h>

#include <chrono>
#include <vector>

namespace fedrun {

class Engine;

struct WaitOptions {
  bool each_rank_has_a_core = true;       // then a rank may spin for a moment before it sleeps
  std::chrono::seconds warn_after{30};    // about an operation that does not finish; 0: never
  std::chrono::seconds abort_after{600};  // throw PeerLostError instead of waiting on; 0: never
};

// Knows the engines of all groups of this process. One thread at a time.
class Scheduler {
 public:
  Scheduler(const Peers& peers, const WaitOptions& options) : peers_(peers), options_(options) {}

  void add(Engine& engine) { engines_.push_back(&engine); }
  void remove(Engine& engine) { std::erase(engines_, &engine); }

  // Returns when the flight has finished, well or not. Throws PeerLostError when it cannot.
  void wait(const Engine& engine, const Flight& flight);

  // Does what can be done without waiting, for all groups; true if that changed anything.
  bool progress();
  // The same for a caller that asks again and again, who must learn of lost peers, too.
  void poll(const Engine& engine, const Flight& flight);

  std::chrono::seconds time_limit() const { return options_.abort_after; }
  bool each_rank_has_a_core() const { return options_.each_rank_has_a_core; }

  // Between two looks for something that should come soon. With fewer cores than ranks, or when the system has put two
  // of them on one core, looking would keep from work the very rank that is waited for: let it run. A look for messages
  // takes as long as that anyway.
  void pause(int looks) const;

 private:
  using Clock = std::chrono::steady_clock;

  bool spin(const Flight& flight);
  bool make_more_room();
  bool must_look() const;  // nobody wakes us for what comes from other hosts and from devices
  void look_for_trouble(const Engine& engine, const Flight& flight);

  const Peers& peers_;
  WaitOptions options_;
  std::vector<Engine*> engines_;
  const Flight* warned_about_ = nullptr;
  unsigned polls_ = 0;
};

}  // namespace fedrun
