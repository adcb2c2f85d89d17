// Plain MPI, called in the same processes as fedrun: what a program would do without it.
#pragma once

#include <memory>

#include "contender.h"

namespace fedrun::bench {

// Collective. Throws UsageError where this run or this build has no MPI. Any workload but averages and Adasum, which
// MPI does not have.
std::unique_ptr<Contender> make_mpi_rival(const Workload& workload);

}  // namespace fedrun::bench
