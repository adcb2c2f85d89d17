// Which samples of a data set belong to which client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace fedrun::data {

using SampleIndex = std::uint32_t;

// The clients' lists lie one after the other in one piece, so that a hundred thousand clients cost no more than their
// samples.
class Partition {
 public:
  std::size_t clients() const { return ends_.size(); }
  std::size_t samples() const { return indices_.size(); }  // of all clients together
  std::span<const SampleIndex> samples_of(std::size_t client) const;
  std::size_t size_of(std::size_t client) const { return samples_of(client).size(); }
  std::span<const SampleIndex> samples_of_all() const { return indices_; }  // client by client

  // Adds a client, the next in order.
  void append(std::span<const SampleIndex> samples);

  // The same for the same lists, on every machine: so that ranks and runs can be compared.
  std::uint64_t hash() const;

  bool operator==(const Partition&) const = default;

 private:
  std::vector<SampleIndex> indices_;
  std::vector<std::size_t> ends_;
};

// As JSON: {"0": [3, 1, 4], "1": [1, 5]}. Throws BackendError when the file cannot be written.
void write_partition(const Partition& partition, const std::filesystem::path& path);

// Reads that, and the net_dataidx_map.txt of FedML's hetero-fix, which has no quotes around the clients' numbers.
// Throws UsageError that names the line for anything else, for a client that is missing and for a sample from
// dataset_size on.
Partition read_partition(const std::filesystem::path& path, std::size_t dataset_size);

struct SplitPartition {
  Partition train;
  Partition test;
};

// Cuts each client's list: the first part, rounded down, is for training.
SplitPartition split_each_client(const Partition& partition, double train_share);

}  // namespace fedrun::data
