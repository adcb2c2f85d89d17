// Compares what the ranks say about an operation, and puts it into words.
#pragma once

#include <fedrun/collectives/board.h>

#include <cstdint>
#include <string>

namespace fedrun {

// What that rank calls, such as "an allreduce (sum) of 12 f32 named 'loss'".
std::string describe_call(const Call& call);

// Of an operation at which every rank has arrived: both sides of the first disagreement, or nothing. Every rank
// compares the same calls in the same order, so all of them find the same.
std::string find_disagreement(const Board& board, std::uint64_t position, int ranks);

}  // namespace fedrun
