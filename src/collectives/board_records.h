// Carries what a rank writes on the board of its host to the boards of other hosts.
#pragma once

#include <fedrun/collectives/board.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fedrun {

using Record = std::vector<std::byte>;

std::size_t longest_record_bytes(int ranks);

// A call that the rank has just written, guesses that it has taken back from that position on, that it has joined,
// what it would put up if there were room, the turn that it has given to an operation on devices, or that it has given
// up its device.
Record record_of_call(const Board& board, int ranks, std::uint64_t position, int rank);
Record record_of_taken_back(std::uint64_t position, int rank);
Record record_of_join(const RankLine& line, int rank);
Record record_of_wish(const RankLine& line, int rank);
Record record_of_launch(std::uint64_t position, std::uint32_t number, int rank);
Record record_of_given_up_device(int rank);

int rank_of(const Record& record);
// Of a call: the position that must have a slot before it is put up.
std::optional<std::uint64_t> position_of(const Record& record);
// Of a call at that position.
std::optional<std::uint64_t> key_of_call(const Record& record, std::uint64_t position);
void put_up(const Record& record, const Board& board, int ranks);

}  // namespace fedrun
