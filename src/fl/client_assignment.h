// Deals the clients of a round out to the rank groups so that all of them finish at about the same time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fedrun::fl {

// For each group, the positions in `costs` that it trains, largest first. Each client, the most costly first, goes to
// the group that has least to do so far: sizes follow a power law, and the large ones must not come last. Ties go to
// the lower number, so every rank finds the same answer without a message.
std::vector<std::vector<std::size_t>> assign_by_cost(std::span<const double> costs, std::size_t groups);

}  // namespace fedrun::fl
