// The other processes of this host: who they are, whether they live, what they let us reach, and how to wait for them.
#pragma once

#include <fedrun/collectives/gather.h>
#include <fedrun/collectives/shared_event.h>
#include <fedrun/collectives/shared_mapping.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace fedrun {

// Made once per process, for all its groups. Ranks are those of the world.
class Peers {
 public:
  // Collective over the world. `host_of` says by rank which host it is on.
  Peers(const Gather& gather, int rank, const std::vector<int>& host_of, bool may_reach_ordinary_memory);

  SharedEvent& event() const { return *reinterpret_cast<SharedEvent*>(event_.data()); }
  int rank() const { return rank_; }
  pid_t pid(int rank) const { return peers_[static_cast<std::size_t>(rank)].pid; }
  bool can_reach_ordinary_memory() const { return can_reach_ordinary_memory_; }

  // Throws PeerLostError if the process of any rank of this host has ended.
  void check_alive() const;

  // "running", "stopped by a signal", …; of a rank of another host: nothing is known.
  std::string state(int rank) const;

 private:
  struct Peer {
    pid_t pid = 0;
    bool is_here = false;
    FileDescriptor process{};  // readable once the process has ended
  };
  bool find_out_about_ordinary_memory(const Gather& gather) const;

  int rank_;
  std::vector<Peer> peers_;
  SharedMapping event_;
  bool can_reach_ordinary_memory_ = false;
};

}  // namespace fedrun
