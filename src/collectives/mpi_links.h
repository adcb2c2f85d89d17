// Makes links that are carried by MPI. Included by the mpi_*.cc files only.
#pragma once

#include <fedrun/collectives/group.h>
#include <fedrun/collectives/links.h>

#include <memory>

namespace fedrun {

// Collective over the members of the group.
std::unique_ptr<Links> make_mpi_links(const Group& group, std::size_t longest_record_bytes);

}  // namespace fedrun
