// Runs ranks as threads of one process, where sanitizers see all of them.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/collectives/engine_backend.h>

#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "support/thread_links.h"

namespace fedrun::test {

// What the ranks have in common before they have a communicator. Any thread.
class ThreadMeeting {
 public:
  explicit ThreadMeeting(std::size_t ranks) : barrier_(static_cast<std::ptrdiff_t>(ranks)), brought_(ranks) {}

  // Threads see the very memory of their neighbours, not a mapping of their own: what they share may go only when all
  // have finished with it.
  void wait() { barrier_.arrive_and_wait(); }

  Gather gather_for(std::size_t rank) {
    return [this, rank](const void* mine, std::size_t bytes, void* all) {
      brought_[rank] = mine;
      wait();
      for (std::size_t i = 0; i < brought_.size(); ++i) {
        std::memcpy(static_cast<std::byte*>(all) + i * bytes, brought_[i], bytes);
      }
      wait();
    };
  }

 private:
  std::barrier<> barrier_;
  std::vector<const void*> brought_;
};

// One thread per rank; `host_of` says by rank on which host it pretends to be.
inline void run_as_threads(const std::vector<int>& host_of,
                           const std::function<void(Communicator&, ThreadMeeting&)>& body) {
  ThreadMeeting meeting(host_of.size());
  ThreadNetwork network;
  const WaitOptions waiting{.each_rank_has_a_core = false, .abort_after = std::chrono::seconds(120)};
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < host_of.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const auto make_links = [&](const Group& group, std::size_t) {
        return std::make_unique<ThreadLinks>(network, group);
      };
      Communicator world(make_world_backend({static_cast<int>(rank), host_of}, meeting.gather_for(rank),
                                            {.wait = waiting, .make_links = make_links}));
      body(world, meeting);
      meeting.wait();
    });
  }
}

}  // namespace fedrun::test
