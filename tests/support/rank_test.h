// What tests that run on several ranks share: the communicator of all ranks of the run.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/collectives/process.h>

#include <span>

namespace fedrun::test {

// The process that rank_main.cc started.
Process& process();
// All its ranks, with elements in the memory that the program is about.
Communicator& world();
inline int rank() { return world().rank(); }
inline int ranks() { return world().size(); }
inline std::size_t rank_index() { return static_cast<std::size_t>(rank()); }
inline bool is_last_rank() { return rank() == ranks() - 1; }

// What all members of the group bring together; also tells whether the group still works.
inline double sum_over(Communicator& group, double mine) {
  group.allreduce(std::span(&mine, 1), {.op = ReduceOp::sum});
  return mine;
}

}  // namespace fedrun::test
