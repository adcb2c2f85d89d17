// What an operation moves: the same for every transport.
#pragma once

#include <fedrun/collectives/board.h>

#include <cstdint>
#include <vector>

namespace fedrun {

// A stream goes from one rank, or reduced from all of them, to one rank or to all of them. Every collective is a few.
struct Stream {
  static constexpr int everyone = -1;
  int from = everyone;
  int to = everyone;
  std::uint64_t first_in = 0;   // element of the input
  std::uint64_t first_out = 0;  // element of the output
  std::uint64_t count = 0;
  int shard =
      -1;  // not -1: of a sharded reduction, only from and to the ranks with this index among those of their host

  bool reduces() const { return from == everyone; }
  bool reaches(int rank) const { return to == everyone || to == rank; }
};

// Of an operation at which every rank has arrived.
// Overwrites `streams`: a list that is used again needs no new memory.
void list_streams(const Board& board, std::uint64_t position, int ranks, std::vector<Stream>& streams);

// How the inputs of a reduction are combined.
struct ReducePlan {
  std::vector<int> sources{};     // the ranks that take part, in rank order
  std::vector<double> weights{};  // by which each source is multiplied; empty: all 1
  ReduceOp op = ReduceOp::sum;
  double postscale = 1;
  double divisor = 1;  // of an average: the weight that took part
};
void plan_reduction(const Board& board, std::uint64_t position, int ranks, ReducePlan& plan);

// The lowest rank that has not joined; every operation but join has one.
int first_taking_part(const Board& board, std::uint64_t position, int ranks);

}  // namespace fedrun
