// Makes sure that all ranks are about to do the same thing, before they start and hang.
#pragma once

#include <fedrun/collectives/communicator.h>

#include <string>
#include <string_view>
#include <vector>

namespace fedrun {

// Collective. Throws MismatchError on every rank, naming the first line in which a rank differs from rank 0, both sides
// of it, and the remedy. Costs one small allgather while the ranks agree.
void check_agreement(Communicator& group, std::string_view what, const std::vector<std::string>& lines,
                     std::string_view remedy = "Build the same model on every rank.");

}  // namespace fedrun
