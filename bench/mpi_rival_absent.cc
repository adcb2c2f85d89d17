// Takes the place of mpi_rival.cc in a build without MPI.
#include <fedrun/core/error.h>

#include "mpi_rival.h"

namespace fedrun::bench {

std::unique_ptr<Contender> make_mpi_rival(const Workload&) {
  throw UsageError("--compare mpi: MPI is not in this build; configure with -DFEDRUN_MPI=ON, or leave the flag out");
}

}  // namespace fedrun::bench
