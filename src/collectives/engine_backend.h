// Makes the backend that carries the collectives of processes: in shared memory inside a host, by messages between
// hosts.
#pragma once

#include <fedrun/collectives/backend.h>
#include <fedrun/collectives/gather.h>
#include <fedrun/collectives/host.h>

#include <memory>
#include <vector>

namespace fedrun {

// Where the ranks of a run are, before they have anything in common.
struct Layout {
  int rank = 0;
  std::vector<int> host_of{0};  // by rank; ranks with the same number share memory
};

// Collective over all ranks of the run; the communicator of all of them.
std::unique_ptr<Backend> make_world_backend(const Layout& layout, const Gather& gather,
                                            const HostOptions& options = {});

// For a run of one process.
std::unique_ptr<Backend> make_self_backend(const DeviceOptions& devices = {});

}  // namespace fedrun
