#include <fedrun/fl/client_assignment.h>

#include <algorithm>
#include <numeric>

namespace fedrun::fl {

std::vector<std::vector<std::size_t>> assign_by_cost(std::span<const double> costs, std::size_t groups) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });

  std::vector<std::vector<std::size_t>> assigned(groups);
  std::vector<double> loads(groups);
  for (const std::size_t position : order) {
    const auto least = static_cast<std::size_t>(std::min_element(loads.begin(), loads.end()) - loads.begin());
    assigned[least].push_back(position);
    loads[least] += costs[position];
  }
  return assigned;
}

}  // namespace fedrun::fl
