// Moves bytes whose number only their owner knows, and the owner's error in their place where they cannot be made.
#pragma once

#include <fedrun/collectives/communicator.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun {

// What the ranks must agree about, and what errors begin with.
struct ByteTerms {
  std::string_view operation;  // such as "broadcast_object"
  std::string_view content;    // what the bytes are, such as "std::string"
};

// All of these are collective. Where `make` throws on a rank, every rank throws UsageError that names that rank and its
// words, and the group can be used afterwards; where the terms or the roots differ, every rank throws MismatchError.
using MakeBytes = std::function<std::string()>;

// The bytes that the root makes; no other rank makes any.
std::string broadcast_bytes(Communicator& group, const ByteTerms& terms, const MakeBytes& make,
                            const BroadcastOptions& options = {});

// What every rank makes, in rank order.
std::vector<std::string> allgather_bytes(Communicator& group, const ByteTerms& terms, const MakeBytes& make,
                                         const ExchangeOptions& options = {});

// Runs the action on every rank; where it throws on a rank, every rank hears of it as above.
void run_everywhere(Communicator& group, std::string_view operation, const std::function<void()>& action);

}  // namespace fedrun
