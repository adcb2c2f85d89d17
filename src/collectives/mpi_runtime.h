// MPI's life time and what MPI knows about this process; no other header of fedrun mentions MPI.
#pragma once

#include <fedrun/collectives/gather.h>
#include <fedrun/collectives/group.h>
#include <fedrun/collectives/links.h>
#include <fedrun/collectives/topology.h>

#include <memory>

namespace fedrun {

// At most one per process, made and destroyed by the main thread. In a build without MPI the constructor throws.
class MpiRuntime {
 public:
  MpiRuntime();
  ~MpiRuntime();
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;

  Topology topology() const;
  Gather gather() const;  // over all ranks of the run
  static std::unique_ptr<Links> make_links(const Group& group, std::size_t longest_record_bytes);

 private:
  bool owner_ = false;           // someone else's MPI_Init wants someone else's MPI_Finalize
  int exceptions_at_start_ = 0;  // more of them in the destructor: we are being unwound
};

}  // namespace fedrun
