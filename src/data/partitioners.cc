#include <fedrun/core/error.h>
#include <fedrun/core/keyed_random.h>
#include <fedrun/data/distributions.h>
#include <fedrun/data/partitioners.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

namespace fedrun::data {
namespace {

using Samples = std::vector<SampleIndex>;

enum RandomStream : std::uint64_t { order_stream, class_stream, shares_stream, client_stream, shard_stream };

void check(std::size_t samples, std::size_t clients) {
  if (clients < 1) throw UsageError("a data set cannot be divided among 0 clients: choose 1 or more");
  if (samples > std::numeric_limits<SampleIndex>::max()) {
    throw UsageError(fmt::format("{} samples are too many for a partition: at most 2^32 - 1", samples));
  }
}

Samples iota(std::size_t count) {
  Samples samples(count);
  std::iota(samples.begin(), samples.end(), SampleIndex{0});
  return samples;
}

// The samples of each class, in their order in the data set.
std::vector<Samples> by_class(Labels labels, std::size_t classes) {
  std::vector<Samples> samples(classes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= classes) {
      throw UsageError(fmt::format("sample {} has the label {}, but there are {} classes", i, labels[i], classes));
    }
    samples[labels[i]].push_back(static_cast<SampleIndex>(i));
  }
  return samples;
}

// Begins where part `index` of `parts` equal ones does; the first `count % parts` have one more.
std::size_t first_of_part(std::size_t count, std::size_t parts, std::size_t index) {
  return count / parts * index + std::min(index, count % parts);
}

Partition from_lists(std::vector<Samples>& lists, std::uint64_t seed) {
  Partition partition;
  for (std::size_t client = 0; client < lists.size(); ++client) {
    KeyedRandom random(seed, client_stream, client);
    shuffle(std::span(lists[client]), random);
    partition.append(lists[client]);
  }
  return partition;
}

// For each class, where each client's piece of it ends. Nothing when a client ends up with too little.
using Cuts = std::vector<std::vector<std::size_t>>;

std::optional<Cuts> draw_cuts(const std::vector<Samples>& classes, std::size_t clients, const DirichletOptions& options,
                              std::uint64_t attempt) {
  std::size_t total = 0;
  for (const Samples& samples : classes) total += samples.size();
  const double even_share = static_cast<double>(total) / static_cast<double>(clients);

  Cuts cuts;
  std::vector<std::size_t> sizes(clients);
  KeyedRandom random(options.seed, shares_stream, attempt);
  for (const Samples& samples : classes) {
    if (samples.empty()) {  // and if it is the last, nobody may be below the even share
      cuts.emplace_back(clients);
      continue;
    }
    std::vector<double> logarithms = draw_log_dirichlet(random, clients, options.alpha);
    for (std::size_t client = 0; client < clients; ++client) {
      if (static_cast<double>(sizes[client]) >= even_share) {
        logarithms[client] = -std::numeric_limits<double>::infinity();
      }
    }
    const std::vector<double> shares = shares_of(logarithms);
    std::vector<std::size_t>& ends = cuts.emplace_back(clients);
    // Rounding may leave the sum a little below 1: the last client that gets any gets what is left.
    std::size_t last = clients - 1;
    while (shares[last] == 0) --last;
    double cumulative = 0;
    std::size_t first = 0;
    for (std::size_t client = 0; client < clients; ++client) {
      cumulative += shares[client];
      const auto end = static_cast<std::size_t>(cumulative * static_cast<double>(samples.size()));
      ends[client] = client >= last ? samples.size() : std::clamp(end, first, samples.size());
      sizes[client] += ends[client] - first;
      first = ends[client];
    }
  }
  if (*std::min_element(sizes.begin(), sizes.end()) < options.smallest) return std::nullopt;
  return cuts;
}

Cuts draw_cuts_until_large_enough(const std::vector<Samples>& classes, std::size_t clients,
                                  const DirichletOptions& options) {
  constexpr std::uint64_t attempts = 10'000;
  for (std::uint64_t attempt = 0; attempt < attempts; ++attempt) {
    if (std::optional<Cuts> cuts = draw_cuts(classes, clients, options, attempt)) return *std::move(cuts);
  }
  throw UsageError(fmt::format(
      "{} draws from Dirichlet({}) left each time one of {} clients with fewer than {} samples: choose a larger "
      "alpha, fewer clients or a smaller least number",
      attempts, options.alpha, clients, options.smallest));
}

}  // namespace

Partition partition_evenly(std::size_t samples, std::size_t clients, std::uint64_t seed) {
  check(samples, clients);
  Samples order = iota(samples);
  KeyedRandom random(seed, order_stream, 0);
  shuffle(std::span(order), random);
  Partition partition;
  for (std::size_t client = 0; client < clients; ++client) {
    const std::size_t first = first_of_part(samples, clients, client);
    partition.append(std::span(order).subspan(first, first_of_part(samples, clients, client + 1) - first));
  }
  return partition;
}

Partition partition_by_dirichlet(Labels labels, std::size_t classes, std::size_t clients,
                                 const DirichletOptions& options) {
  check(labels.size(), clients);
  if (!(options.alpha > 0)) {
    throw UsageError(fmt::format("a Dirichlet partition cannot have alpha {}: choose a positive one", options.alpha));
  }
  if (labels.size() / clients < options.smallest) {
    throw UsageError(fmt::format("{} samples cannot give each of {} clients at least {}: choose fewer clients",
                                 labels.size(), clients, options.smallest));
  }
  std::vector<Samples> samples = by_class(labels, classes);
  const Cuts cuts = draw_cuts_until_large_enough(samples, clients, options);

  std::vector<Samples> lists(clients);
  for (std::size_t label = 0; label < classes; ++label) {
    KeyedRandom random(options.seed, class_stream, label);
    shuffle(std::span(samples[label]), random);
    std::size_t first = 0;
    for (std::size_t client = 0; client < clients; ++client) {
      const std::size_t end = cuts[label][client];
      const auto piece = std::span(samples[label]).subspan(first, end - first);
      lists[client].insert(lists[client].end(), piece.begin(), piece.end());
      first = end;
    }
  }
  return from_lists(lists, options.seed);
}

Partition partition_by_shards(Labels labels, std::size_t classes, std::size_t clients, const ShardOptions& options) {
  check(labels.size(), clients);
  const std::size_t shards = clients * options.shards_per_client;
  if (shards < 1 || shards > labels.size()) {
    throw UsageError(fmt::format("{} samples cannot be cut into {} shards for each of {} clients", labels.size(),
                                 options.shards_per_client, clients));
  }
  Samples sorted;
  for (const Samples& samples : by_class(labels, classes)) {
    sorted.insert(sorted.end(), samples.begin(), samples.end());
  }
  Samples order = iota(shards);
  KeyedRandom random(options.seed, shard_stream, 0);
  shuffle(std::span(order), random);

  std::vector<Samples> lists(clients);
  for (std::size_t i = 0; i < shards; ++i) {
    const std::size_t first = first_of_part(sorted.size(), shards, order[i]);
    const std::size_t end = first_of_part(sorted.size(), shards, order[i] + std::size_t{1});
    const auto shard = std::span(sorted).subspan(first, end - first);
    Samples& list = lists[i / options.shards_per_client];
    list.insert(list.end(), shard.begin(), shard.end());
  }
  return from_lists(lists, options.seed);
}

Partition partition_by_power_law(Labels labels, std::size_t classes, std::size_t clients, std::uint64_t seed) {
  constexpr std::size_t labels_of_client = 2;
  constexpr std::size_t least_of_label = 5;
  check(labels.size(), clients);
  const std::vector<Samples> samples = by_class(labels, classes);
  const auto label_of = [&](std::size_t client, std::size_t j) { return (client + j) % classes; };

  std::vector<double> weights;  // of client 0's first label, its second, client 1's first, …
  std::vector<double> weight_of_label(classes);
  std::vector<std::size_t> promised(classes);
  for (std::size_t client = 0; client < clients; ++client) {
    KeyedRandom random(seed, shares_stream, client);
    for (std::size_t j = 0; j < labels_of_client; ++j) {
      weights.push_back(std::exp(2 * draw_normal(random)));
      weight_of_label[label_of(client, j)] += weights.back();
      promised[label_of(client, j)] += least_of_label;
    }
  }
  for (std::size_t label = 0; label < classes; ++label) {
    if (promised[label] > samples[label].size()) {
      throw UsageError(fmt::format("{} clients need {} samples of class {}, but there are {}: choose fewer clients",
                                   clients, promised[label], label, samples[label].size()));
    }
  }

  std::vector<Samples> lists(clients);
  std::vector<std::size_t> dealt(classes);
  for (std::size_t client = 0; client < clients; ++client) {
    for (std::size_t j = 0; j < labels_of_client; ++j) {
      const std::size_t label = label_of(client, j);
      const auto left = static_cast<double>(samples[label].size() - promised[label]);
      const double share = weights[client * labels_of_client + j] / weight_of_label[label];
      const std::size_t count = least_of_label + static_cast<std::size_t>(left * share);
      const auto piece = std::span(samples[label]).subspan(dealt[label], count);
      lists[client].insert(lists[client].end(), piece.begin(), piece.end());
      dealt[label] += count;
    }
  }
  return from_lists(lists, seed);
}

}  // namespace fedrun::data
