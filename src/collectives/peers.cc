#include <fedrun/collectives/peer_memory.h>
#include <fedrun/collectives/peers.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace fedrun {

Peers::Peers(const Gather& gather, int rank, const std::vector<int>& host_of, bool may_reach_ordinary_memory)
    : rank_(rank), peers_(host_of.size()) {
  const int ranks = static_cast<int>(host_of.size());
  const auto own = static_cast<std::size_t>(rank);
  FileDescriptor descriptor;
  SharedMapping mine = SharedMapping::create(sizeof(SharedEvent), descriptor);
  const auto handles = gather_values(gather, ranks, mine.handle(descriptor));
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    peers_[i].pid = static_cast<pid_t>(handles[i].pid);
    peers_[i].is_here = host_of[i] == host_of[own];
    if (!peers_[i].is_here) continue;
    peers_[i].process = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, peers_[i].pid, 0)));
  }
  // The event of the host's lowest rank is everyone's.
  const auto lowest = static_cast<std::size_t>(std::ranges::find_if(peers_, &Peer::is_here) - peers_.begin());
  event_ = lowest == own ? std::move(mine) : SharedMapping::open(handles[lowest]);
  can_reach_ordinary_memory_ = find_out_about_ordinary_memory(gather) && may_reach_ordinary_memory;
}

// Also keeps the descriptors open until everyone has mapped what they are for.
bool Peers::find_out_about_ordinary_memory(const Gather& gather) const {
  allow_peers_to_reach_memory();
  const int ranks = static_cast<int>(peers_.size());
  const std::int64_t probe = 1;
  const auto addresses = gather_values(gather, ranks, reinterpret_cast<std::uintptr_t>(&probe));
  bool reachable = true;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i].is_here) continue;
    reachable = reachable && can_read_peer(peers_[i].pid, reinterpret_cast<const void*>(addresses[i]), sizeof probe);
  }
  const auto answers = gather_values(gather, ranks, static_cast<std::uint8_t>(reachable ? 1 : 0));
  return std::ranges::all_of(answers, [](std::uint8_t answer) { return answer != 0; });
}

void Peers::check_alive() const {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    pollfd ended{peers_[rank].process.get(), POLLIN, 0};
    if (ended.fd < 0 || ::poll(&ended, 1, 0) != 1) continue;
    throw PeerLostError(
        fmt::format("rank {} (process {}) has ended while this rank was waiting for it", rank, peers_[rank].pid));
  }
}

std::string Peers::state(int rank) const {
  if (!peers_[static_cast<std::size_t>(rank)].is_here) return "on another host";
  std::ifstream file(fmt::format("/proc/{}/stat", pid(rank)));
  std::string text;
  std::getline(file, text);
  const std::size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos || end_of_name + 2 >= text.size()) return "has ended";
  switch (text[end_of_name + 2]) {
    case 'T':
    case 't':
      return "stopped by a signal or a debugger";
    case 'Z':
    case 'X':
      return "has ended";
    case 'D':
      return "waits for a disk or a device";
    case 'R':
      return "computes";
    default:
      return "sleeps";
  }
}

}  // namespace fedrun
