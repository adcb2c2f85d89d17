// Stands in for MPI in a build without MPI.
#include <fedrun/collectives/mpi_runtime.h>
#include <fedrun/core/error.h>

namespace fedrun {

MpiRuntime::MpiRuntime() {
  throw BackendError("MPI is not in this build: configure with -DFEDRUN_MPI=ON, or run one process");
}
MpiRuntime::~MpiRuntime() = default;
Topology MpiRuntime::topology() const { return {}; }
Gather MpiRuntime::gather() const { return {}; }
std::unique_ptr<Links> MpiRuntime::make_links(const Group&, std::size_t) { return nullptr; }

}  // namespace fedrun
