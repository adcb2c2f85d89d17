#include <fedrun/core/error.h>
#include <fedrun/fl/result_aggregator.h>
#include <fedrun/train/objects.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

namespace fedrun::fl {

void ResultAggregator::add(std::size_t client, const Meter& metrics) {
  for (const std::string& name : metrics.names()) {
    const double samples = metrics.samples(name) + metrics.samples_not_finite(name);
    if (samples == 0) continue;
    const bool is_finite = metrics.samples_not_finite(name) == 0;
    results_[name].push_back(
        {client, samples, is_finite ? metrics.mean(name) : std::numeric_limits<double>::quiet_NaN()});
  }
}

std::vector<std::string> ResultAggregator::metrics() const {
  std::vector<std::string> names;
  for (const auto& [name, results] : results_) names.push_back(name);
  return names;
}

const std::vector<ClientResult>& ResultAggregator::clients(std::string_view metric) const {
  const auto found = results_.find(metric);
  if (found == results_.end()) {
    throw UsageError(fmt::format("no client has the metric '{}', only '{}'", metric, fmt::join(metrics(), "', '")));
  }
  return found->second;
}

double ResultAggregator::mean(std::string_view metric) const {
  double sum = 0;
  double samples = 0;
  for (const ClientResult& result : clients(metric)) {
    if (!std::isfinite(result.value)) continue;
    sum += result.value * result.samples;
    samples += result.samples;
  }
  return samples > 0 ? sum / samples : std::numeric_limits<double>::quiet_NaN();
}

std::vector<ClientResult> ResultAggregator::ranked(std::string_view metric) const {
  std::vector<ClientResult> results = clients(metric);
  std::stable_sort(results.begin(), results.end(), [](const ClientResult& a, const ClientResult& b) {
    if (!std::isfinite(a.value) || !std::isfinite(b.value)) return std::isfinite(a.value) && !std::isfinite(b.value);
    return a.value < b.value;
  });
  return results;
}

ResultAggregator ResultAggregator::over_ranks(Communicator& group) const {
  // A rank without clients has no metrics, so the ranks first find out which there are.
  std::set<std::string> names;
  for (const std::string& of_rank : allgather_object(group, fmt::format("{}", fmt::join(metrics(), "\n")))) {
    std::istringstream lines(of_rank);
    for (std::string name; std::getline(lines, name);) names.insert(name);
  }
  ResultAggregator all;
  for (const std::string& name : names) {
    std::vector<double> mine;
    if (const auto found = results_.find(name); found != results_.end()) {
      for (const ClientResult& result : found->second) {
        mine.insert(mine.end(), {static_cast<double>(result.client), result.samples, result.value});
      }
    }
    std::vector<ClientResult>& results = all.results_[name];
    for (const std::vector<double>& of_rank : allgather_object(group, mine)) {
      for (std::size_t i = 0; i < of_rank.size(); i += 3) {
        results.push_back({static_cast<std::size_t>(of_rank[i]), of_rank[i + 1], of_rank[i + 2]});
      }
    }
    std::stable_sort(results.begin(), results.end(),
                     [](const ClientResult& a, const ClientResult& b) { return a.client < b.client; });
  }
  return all;
}

}  // namespace fedrun::fl
