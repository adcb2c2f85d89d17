#include <fedrun/collectives/mpi_call.h>
#include <fedrun/collectives/mpi_links.h>
#include <fedrun/collectives/mpi_runtime.h>
#include <fedrun/core/host_name.h>

#include <exception>
#include <span>
#include <vector>

namespace fedrun {
namespace {

// A communicator of MPI's that is needed only while the topology is found out.
class ScopedComm {
 public:
  MPI_Comm* receive() { return &communicator_; }
  MPI_Comm get() const { return communicator_; }
  int rank() const {
    int rank = 0;
    check_mpi("MPI_Comm_rank", MPI_Comm_rank(communicator_, &rank));
    return rank;
  }
  int size() const {
    int size = 0;
    check_mpi("MPI_Comm_size", MPI_Comm_size(communicator_, &size));
    return size;
  }
  ScopedComm() = default;
  ScopedComm(const ScopedComm&) = delete;
  ScopedComm& operator=(const ScopedComm&) = delete;
  ~ScopedComm() {
    if (communicator_ != MPI_COMM_NULL) MPI_Comm_free(&communicator_);
  }

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
};

std::string gather_affinity_masks(const ScopedComm& local, const std::string& mine) {
  std::string all(mine.size() * static_cast<std::size_t>(local.size()), '0');
  const int bytes = static_cast<int>(mine.size());
  check_mpi("MPI_Allgather", MPI_Allgather(mine.data(), bytes, MPI_CHAR, all.data(), bytes, MPI_CHAR, local.get()));
  return all;
}

// Ranks of one host have the same cross rank: the position of their host among the hosts, by lowest rank.
void find_hosts(const ScopedComm& local, Topology& topology) {
  ScopedComm leaders;
  const int color = topology.local_rank == 0 ? 0 : MPI_UNDEFINED;
  check_mpi("MPI_Comm_split", MPI_Comm_split(MPI_COMM_WORLD, color, topology.rank, leaders.receive()));
  int facts[3] = {0, 1, 1};  // this host's number, the number of hosts, are they alike
  if (topology.local_rank == 0) {
    facts[0] = leaders.rank();
    facts[1] = leaders.size();
    int smallest_and_negated_largest[2] = {topology.local_size, -topology.local_size};
    check_mpi("MPI_Allreduce",
              MPI_Allreduce(MPI_IN_PLACE, smallest_and_negated_largest, 2, MPI_INT, MPI_MIN, leaders.get()));
    facts[2] = smallest_and_negated_largest[0] == -smallest_and_negated_largest[1] ? 1 : 0;
  }
  check_mpi("MPI_Bcast", MPI_Bcast(facts, 3, MPI_INT, 0, local.get()));
  topology.cross_rank = facts[0];
  topology.cross_size = facts[1];
  topology.homogeneous = facts[2] != 0;
}

}  // namespace

MpiRuntime::MpiRuntime() : exceptions_at_start_(std::uncaught_exceptions()) {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (finalized != 0) {
    throw UsageError(
        "MPI has already been finalized in this process and cannot start again: keep one Session for the whole run");
  }
  if (initialized == 0) {
    int provided = 0;
    check_mpi("MPI_Init_thread", MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
    owner_ = true;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

MpiRuntime::~MpiRuntime() {
  // MPI_Finalize waits for every rank. While an exception ends this one it would wait for ever; without it the
  // launcher sees a rank that ended early and stops the others.
  if (owner_ && std::uncaught_exceptions() <= exceptions_at_start_) MPI_Finalize();
}

Topology MpiRuntime::topology() const {
  Topology topology;
  topology.host = host_name();
  MPI_Comm_rank(MPI_COMM_WORLD, &topology.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &topology.size);
  ScopedComm local;
  check_mpi("MPI_Comm_split_type",
            MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, topology.rank, MPI_INFO_NULL, local.receive()));
  topology.local_rank = local.rank();
  topology.local_size = local.size();
  const std::string mask = affinity_mask();
  assign_cores(topology, fair_share_of_cores(mask, gather_affinity_masks(local, mask)));
  find_hosts(local, topology);
  return topology;
}

Gather MpiRuntime::gather() const {
  return [](const void* mine, std::size_t bytes, void* all) {
    const int count = static_cast<int>(bytes);
    check_mpi("MPI_Allgather", MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, MPI_COMM_WORLD));
  };
}

std::unique_ptr<Links> MpiRuntime::make_links(const Group& group, std::size_t longest_record_bytes) {
  return make_mpi_links(group, longest_record_bytes);
}

}  // namespace fedrun
