// Checks each way of dealing samples out: nothing lost, nothing twice, and the shape that the literature describes.
#include <fedrun/data/distributions.h>
#include <fedrun/data/partitioners.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "support/error_text.h"

namespace fedrun::data {
namespace {

using test::usage_error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Samples = std::vector<SampleIndex>;
using LabelVector = std::vector<std::uint8_t>;

// Labels in no order, with classes of different sizes.
LabelVector some_labels(std::size_t count, std::size_t classes) {
  LabelVector labels(count);
  for (std::size_t i = 0; i < count; ++i) labels[i] = static_cast<std::uint8_t>((i * 2654435761U >> 8) % classes);
  return labels;
}

LabelVector balanced_labels(std::size_t count, std::size_t classes) {
  LabelVector labels(count);
  for (std::size_t i = 0; i < count; ++i) labels[i] = static_cast<std::uint8_t>(i % classes);
  return labels;
}

Samples all_samples(const Partition& partition) {
  Samples all;
  for (std::size_t client = 0; client < partition.clients(); ++client) {
    const auto samples = partition.samples_of(client);
    all.insert(all.end(), samples.begin(), samples.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

void expect_each_sample_once(const Partition& partition, std::size_t count) {
  Samples expected(count);
  std::iota(expected.begin(), expected.end(), SampleIndex{0});
  EXPECT_EQ(all_samples(partition), expected);
}

std::vector<std::size_t> sizes_of(const Partition& partition) {
  std::vector<std::size_t> sizes;
  for (std::size_t client = 0; client < partition.clients(); ++client) sizes.push_back(partition.size_of(client));
  return sizes;
}

std::vector<std::size_t> histogram(const Partition& partition, std::size_t client, Labels labels, std::size_t classes) {
  std::vector<std::size_t> counts(classes);
  for (const SampleIndex sample : partition.samples_of(client)) ++counts[labels[sample]];
  return counts;
}

TEST(PartitionEvenly, IsAPermutationInEqualParts) {
  for (const std::size_t count : {0, 1, 7, 100, 1023}) {
    for (const std::size_t clients : {1, 2, 3, 10}) expect_each_sample_once(partition_evenly(count, clients, 1), count);
  }
  EXPECT_THAT(sizes_of(partition_evenly(11, 4, 1)), ElementsAre(3, 3, 3, 2));
  EXPECT_EQ(partition_evenly(100, 4, 1), partition_evenly(100, 4, 1));
  EXPECT_NE(partition_evenly(100, 4, 1), partition_evenly(100, 4, 2));
  EXPECT_THAT(usage_error_of([] { partition_evenly(5, 0, 1); }), HasSubstr("0 clients"));
}

TEST(PartitionByDirichlet, LosesNothingAndLeavesNobodyOut) {
  const LabelVector labels = some_labels(3000, 10);
  for (const double alpha : {0.1, 0.5, 100.0}) {
    const Partition partition = partition_by_dirichlet(labels, 10, 10, {.alpha = alpha, .seed = 3});
    expect_each_sample_once(partition, labels.size());
    for (const std::size_t size : sizes_of(partition)) EXPECT_GE(size, 10u) << alpha;
  }
  expect_each_sample_once(partition_by_dirichlet(labels, 10, 1), labels.size());
  expect_each_sample_once(partition_by_dirichlet(labels, 12, 10), labels.size());
}

TEST(PartitionByDirichlet, ShufflesWhatEachClientHas) {
  const LabelVector labels = balanced_labels(1000, 2);
  const Partition partition = partition_by_dirichlet(labels, 2, 2, {.alpha = 100});
  const auto samples = partition.samples_of(0);
  const auto changes = std::adjacent_find(
      samples.begin(), samples.end(), [&](SampleIndex a, SampleIndex b) { return labels[a] == 1 && labels[b] == 0; });
  EXPECT_NE(changes, samples.end()) << "class 0 comes first, then class 1: nothing was shuffled";
}

TEST(PartitionByDirichlet, SharesHaveTheMomentsOfDirichlet) {
  // With one class nobody is passed over, so the shares are those drawn.
  const LabelVector labels(10'000, 0);
  constexpr std::size_t clients = 5;
  for (const double alpha : {0.5, 5.0}) {
    double sum = 0;
    double squares = 0;
    constexpr int draws = 2000;
    for (std::uint64_t seed = 0; seed < draws; ++seed) {
      const Partition partition =
          partition_by_dirichlet(labels, 1, clients, {.alpha = alpha, .smallest = 0, .seed = seed});
      const double share = static_cast<double>(partition.size_of(1)) / static_cast<double>(labels.size());
      sum += share;
      squares += share * share;
    }
    const double mean = sum / draws;
    EXPECT_NEAR(mean, 1.0 / clients, 0.02) << alpha;
    EXPECT_NEAR(squares / draws - mean * mean, 0.2 * 0.8 / (clients * alpha + 1), 0.006) << alpha;
  }
}

TEST(PartitionByDirichlet, PassesOverClientsThatHaveTheirShare) {
  // A client that has its even share before the last class gets nothing of that class.
  const LabelVector labels = balanced_labels(3000, 10);
  constexpr std::size_t clients = 4;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Partition partition = partition_by_dirichlet(labels, 10, clients, {.alpha = 0.3, .seed = seed});
    for (std::size_t client = 0; client < clients; ++client) {
      std::size_t held = 0;
      for (const std::size_t count : histogram(partition, client, labels, 10)) {
        EXPECT_TRUE(held < labels.size() / clients || count == 0) << "seed " << seed << ", client " << client;
        held += count;
      }
    }
  }
}

TEST(PartitionByDirichlet, SmallAlphaMeansFewClassesEach) {
  const LabelVector labels = balanced_labels(10'000, 10);
  const auto classes_seen = [&](double alpha) {
    const Partition partition = partition_by_dirichlet(labels, 10, 10, {.alpha = alpha, .smallest = 1, .seed = 1});
    std::size_t seen = 0;
    for (std::size_t client = 0; client < 10; ++client) {
      const auto counts = histogram(partition, client, labels, 10);
      seen += static_cast<std::size_t>(std::count_if(counts.begin(), counts.end(), [](auto n) { return n > 0; }));
    }
    return seen;
  };
  EXPECT_LT(classes_seen(0.05), 45u);
  EXPECT_EQ(classes_seen(100), 100u);
}

TEST(PartitionByDirichlet, GivesUpWhereThereIsNoSuchPartition) {
  const LabelVector labels = some_labels(100, 10);
  EXPECT_EQ(usage_error_of([&] { partition_by_dirichlet(labels, 10, 11); }),
            "100 samples cannot give each of 11 clients at least 10: choose fewer clients");
  EXPECT_THAT(usage_error_of([&] { partition_by_dirichlet(labels, 10, 10, {.alpha = 0.01}); }),
              AllOf(HasSubstr("draws from Dirichlet(0.01)"), HasSubstr("one of 10 clients")));
  EXPECT_THAT(usage_error_of([&] { partition_by_dirichlet(labels, 10, 2, {.alpha = 0}); }), HasSubstr("alpha 0"));
  EXPECT_THAT(usage_error_of([&] { partition_by_dirichlet(labels, 9, 2); }), HasSubstr("there are 9 classes"));
}

TEST(PartitionByShards, GivesTwoLabelsToMostClients) {
  const LabelVector labels = balanced_labels(60'000, 10);
  const Partition partition = partition_by_shards(labels, 10, 100, {.seed = 1});
  expect_each_sample_once(partition, labels.size());
  for (std::size_t client = 0; client < 100; ++client) {
    EXPECT_EQ(partition.size_of(client), 600u);
    const auto counts = histogram(partition, client, labels, 10);
    EXPECT_LE(std::count_if(counts.begin(), counts.end(), [](auto n) { return n > 0; }), 2);
  }
  EXPECT_NE(partition, partition_by_shards(labels, 10, 100, {.seed = 2}));
}

TEST(PartitionByShards, TakesNumbersThatDoNotDivide) {
  const LabelVector labels = some_labels(1001, 7);
  expect_each_sample_once(partition_by_shards(labels, 7, 10, {.shards_per_client = 3}), labels.size());
  EXPECT_THAT(usage_error_of([&] { partition_by_shards(labels, 7, 1000); }),
              HasSubstr("1001 samples cannot be cut into 2 shards for each of 1000 clients"));
}

TEST(PartitionByPowerLaw, GivesEachClientItsTwoClasses) {
  const LabelVector labels = balanced_labels(70'000, 10);
  const Partition partition = partition_by_power_law(labels, 10, 1000, 1);
  const Samples all = all_samples(partition);
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), all.size()) << "no sample twice";
  EXPECT_GT(all.size(), 68'000u) << "only what is rounded down is with nobody";
  for (std::size_t client = 0; client < 1000; ++client) {
    const auto counts = histogram(partition, client, labels, 10);
    EXPECT_GE(counts[client % 10], 5u);
    EXPECT_GE(counts[(client + 1) % 10], 5u);
    EXPECT_EQ(counts[client % 10] + counts[(client + 1) % 10], partition.size_of(client));
  }
}

TEST(PartitionByPowerLaw, IsUnevenAsTheLognormalIs) {
  const LabelVector labels = balanced_labels(70'000, 10);
  std::vector<std::size_t> sizes = sizes_of(partition_by_power_law(labels, 10, 1000, 1));
  std::sort(sizes.begin(), sizes.end());
  EXPECT_LT(sizes[500], 40u);
  EXPECT_GT(sizes.back(), 1000u);
  EXPECT_THAT(usage_error_of([&] { partition_by_power_law(labels, 10, 7001, 1); }),
              HasSubstr("need 7005 samples of class 0, but there are 7000"));
}

// Published results name a partition by its seed: the same code must find it again on every machine.
TEST(Partitioners, StayAsTheyAre) {
  const LabelVector labels = some_labels(2000, 10);
  EXPECT_EQ(partition_evenly(2000, 7, 5).hash(), 355098671701594200u);
  EXPECT_EQ(partition_by_dirichlet(labels, 10, 7, {.seed = 5}).hash(), 17904688151443416778u);
  EXPECT_EQ(partition_by_shards(labels, 10, 7, {.seed = 5}).hash(), 6646707309990069676u);
  EXPECT_EQ(partition_by_power_law(labels, 10, 7, 5).hash(), 110341498954615865u);
}

}  // namespace
}  // namespace fedrun::data
