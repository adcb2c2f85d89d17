#include <fedrun/collectives/peer_memory.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace fedrun {
namespace {

using Transfer = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

bool transfer(Transfer call, pid_t pid, const void* remote, const void* local, std::size_t bytes) {
  // The kernel may stop early at a page boundary, so go on until all is copied.
  for (std::size_t done = 0; done < bytes;) {
    iovec here{const_cast<std::byte*>(static_cast<const std::byte*>(local)) + done, bytes - done};
    iovec there{const_cast<std::byte*>(static_cast<const std::byte*>(remote)) + done, bytes - done};
    const ssize_t copied = call(pid, &here, 1, &there, 1, 0);
    if (copied <= 0) return false;
    done += static_cast<std::size_t>(copied);
  }
  return true;
}

void transfer_or_throw(const char* verb, Transfer call, pid_t pid, const void* remote, const void* local,
                       std::size_t bytes) {
  if (transfer(call, pid, remote, local, bytes)) return;
  if (errno == ESRCH)
    throw PeerLostError(fmt::format("process {} of this host has ended while its memory was needed", pid));
  throw BackendError(
      fmt::format("cannot {} {} bytes of the memory of process {}: {}", verb, bytes, pid, std::strerror(errno)));
}

}  // namespace

void allow_peers_to_reach_memory() { ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

bool can_read_peer(pid_t pid, const void* remote, std::size_t bytes) {
  std::vector<std::byte> scratch(bytes);
  return transfer(::process_vm_readv, pid, remote, scratch.data(), bytes);
}

void read_peer(pid_t pid, const void* remote, void* local, std::size_t bytes) {
  transfer_or_throw("read", ::process_vm_readv, pid, remote, local, bytes);
}

void write_peer(pid_t pid, void* remote, const void* local, std::size_t bytes) {
  transfer_or_throw("write", ::process_vm_writev, pid, remote, local, bytes);
}

}  // namespace fedrun
