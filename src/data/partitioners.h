// The ways in which the literature deals one data set out to clients, from even to very uneven.
#pragma once

#include <fedrun/data/partition.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace fedrun::data {

// All of these depend on their arguments alone, so every rank finds the same partition without a message. Labels are
// below `classes`. They throw UsageError where there is no such partition.
using Labels = std::span<const std::uint8_t>;

// "homo": a permutation in equal parts, of which the first have one sample more where the clients do not divide it.
Partition partition_evenly(std::size_t samples, std::size_t clients, std::uint64_t seed);

struct DirichletOptions {
  double alpha = 0.5;         // small: each class is with few clients; large: close to even
  std::size_t smallest = 10;  // everything is drawn again until each client has so many samples
  std::uint64_t seed = 0;
};

// "hetero": each class is cut into shares drawn from Dirichlet(alpha). A client that has its even share of all samples
// already gets none of the classes that follow.
Partition partition_by_dirichlet(Labels labels, std::size_t classes, std::size_t clients,
                                 const DirichletOptions& options = {});

struct ShardOptions {
  std::size_t shards_per_client = 2;
  std::uint64_t seed = 0;
};

// McMahan's non-IID partition: the samples sorted by label, cut into equal shards, of which each client gets some.
Partition partition_by_shards(Labels labels, std::size_t classes, std::size_t clients,
                              const ShardOptions& options = {});

// The power law of FedProx's MNIST for logistic regression: client u has 5 samples each of the classes u and u + 1
// (modulo their number), and of what is left of these a part in proportion to a lognormal(0, 2) draw, rounded down.
// Some samples are with nobody. Meant for the 70,000 images of both parts of MNIST, to be cut by split_each_client.
Partition partition_by_power_law(Labels labels, std::size_t classes, std::size_t clients, std::uint64_t seed);

}  // namespace fedrun::data
