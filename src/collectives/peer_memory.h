// Copies between this process and the ordinary memory of another one, in one step, through the kernel.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace fedrun {

// Lets the other ranks of this user reach our memory where the system asks for that (Yama); harmless elsewhere.
void allow_peers_to_reach_memory();

// Is it allowed to read `bytes` of that process? For finding out once, before relying on it.
bool can_read_peer(pid_t pid, const void* remote, std::size_t bytes);

// Throw PeerLostError when the process is gone, BackendError otherwise.
void read_peer(pid_t pid, const void* remote, void* local, std::size_t bytes);
void write_peer(pid_t pid, void* remote, const void* local, std::size_t bytes);

}  // namespace fedrun
