// Checks exact partitions, because a sampler that repeats or loses a sample still trains, only worse.
#include <fedrun/sampler/distributed_sampler.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "support/error_text.h"

namespace fedrun {
namespace {

using test::usage_error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAreArray;

using Indices = std::vector<size_t>;

constexpr size_t dataset_sizes[] = {0, 1, 7, 10, 100};
constexpr int replica_counts[] = {1, 2, 3, 4, 13, 101};

Indices remaining_indices(DistributedSampler& sampler, size_t batch_size = 3) {
  Indices all;
  while (const auto batch = sampler.next(batch_size)) all.insert(all.end(), batch->begin(), batch->end());
  return all;
}

Indices one_epoch(DistributedSampler& sampler) {
  sampler.reset();
  return remaining_indices(sampler);
}

Indices first_epoch(size_t dataset_size, int rank, int replicas, DistributedSamplerOptions options) {
  DistributedSampler sampler(dataset_size, rank, replicas, options);
  return one_epoch(sampler);
}

Indices iota(size_t count) {
  Indices indices(count);
  std::iota(indices.begin(), indices.end(), size_t{0});
  return indices;
}

// The order that all ranks share, put together again: position p belongs to rank p % replicas.
Indices interleave(size_t dataset_size, int replicas, DistributedSamplerOptions options) {
  std::vector<Indices> ranks;
  for (int rank = 0; rank < replicas; ++rank) ranks.push_back(first_epoch(dataset_size, rank, replicas, options));
  Indices order;
  for (size_t row = 0; row < ranks[0].size(); ++row) {
    for (const Indices& rank : ranks) {
      if (row < rank.size()) order.push_back(rank[row]);
    }
  }
  return order;
}

// What the order must be without shuffling: 0, 1, 2, … and then from the start again.
Indices counted_modulo(size_t length, size_t dataset_size) {
  Indices indices(length);
  for (size_t i = 0; i < length; ++i) indices[i] = i % dataset_size;
  return indices;
}

TEST(DistributedSampler, PadsFromTheStartOfTheOrder) {
  for (const size_t n : dataset_sizes) {
    for (const int replicas : replica_counts) {
      SCOPED_TRACE(testing::Message() << n << " samples, " << replicas << " replicas");
      const size_t per_rank = (n + static_cast<size_t>(replicas) - 1) / static_cast<size_t>(replicas);
      for (int rank = 0; rank < replicas; ++rank) {
        DistributedSampler sampler(n, rank, replicas, {.shuffle = false});
        EXPECT_EQ(sampler.size(), per_rank);
        EXPECT_EQ(one_epoch(sampler).size(), per_rank);
      }
      EXPECT_THAT(interleave(n, replicas, {.shuffle = false}),
                  ElementsAreArray(counted_modulo(per_rank * static_cast<size_t>(replicas), n)));
    }
  }
}

TEST(DistributedSampler, DropsTheEndOfTheOrder) {
  for (const size_t n : dataset_sizes) {
    for (const int replicas : replica_counts) {
      SCOPED_TRACE(testing::Message() << n << " samples, " << replicas << " replicas");
      const size_t per_rank = n / static_cast<size_t>(replicas);
      for (int rank = 0; rank < replicas; ++rank) {
        DistributedSampler sampler(n, rank, replicas, {.shuffle = false, .tail = Tail::drop});
        EXPECT_EQ(sampler.size(), per_rank);
        EXPECT_EQ(one_epoch(sampler).size(), per_rank);
      }
      EXPECT_THAT(interleave(n, replicas, {.shuffle = false, .tail = Tail::drop}),
                  ElementsAreArray(iota(per_rank * static_cast<size_t>(replicas))));
    }
  }
}

TEST(DistributedSampler, UnevenGivesEachIndexExactlyOnce) {
  for (const size_t n : dataset_sizes) {
    for (const int replicas : replica_counts) {
      SCOPED_TRACE(testing::Message() << n << " samples, " << replicas << " replicas");
      EXPECT_THAT(interleave(n, replicas, {.shuffle = false, .tail = Tail::uneven}), ElementsAreArray(iota(n)));
      EXPECT_THAT(interleave(n, replicas, {.seed = 5, .tail = Tail::uneven}), UnorderedElementsAreArray(iota(n)));
    }
  }
}

TEST(DistributedSampler, SmallPartitionsAreWhatTorchGives) {
  EXPECT_THAT(first_epoch(7, 0, 3, {.shuffle = false}), ElementsAre(0, 3, 6));
  EXPECT_THAT(first_epoch(7, 1, 3, {.shuffle = false}), ElementsAre(1, 4, 0));
  EXPECT_THAT(first_epoch(7, 2, 3, {.shuffle = false}), ElementsAre(2, 5, 1));
  EXPECT_THAT(first_epoch(7, 2, 3, {.shuffle = false, .tail = Tail::drop}), ElementsAre(2, 5));
  EXPECT_THAT(first_epoch(7, 0, 3, {.shuffle = false, .tail = Tail::uneven}), ElementsAre(0, 3, 6));
  EXPECT_THAT(first_epoch(7, 2, 3, {.shuffle = false, .tail = Tail::uneven}), ElementsAre(2, 5));
  EXPECT_THAT(first_epoch(2, 4, 5, {.shuffle = false}), ElementsAre(0));
  EXPECT_THAT(first_epoch(2, 4, 5, {.shuffle = false, .tail = Tail::uneven}), IsEmpty());
}

TEST(DistributedSampler, RanksShareOneShuffledOrder) {
  const Indices whole = first_epoch(100, 0, 1, {.seed = 3});
  for (const int replicas : {2, 3, 4}) {
    EXPECT_THAT(interleave(100, replicas, {.seed = 3, .tail = Tail::uneven}), ElementsAreArray(whole));
  }
  Indices padded = whole;
  padded.insert(padded.end(), whole.begin(), whole.begin() + 2);
  EXPECT_THAT(interleave(100, 3, {.seed = 3}), ElementsAreArray(padded));
}

// Written down once from an independent implementation: resuming an old run needs the old order.
TEST(DistributedSampler, ShuffleNeverChanges) {
  EXPECT_THAT(first_epoch(10, 0, 1, {.seed = 0}), ElementsAre(7, 2, 0, 8, 3, 9, 6, 1, 5, 4));
  EXPECT_THAT(first_epoch(10, 0, 1, {.seed = 1}), ElementsAre(1, 7, 3, 9, 4, 0, 5, 2, 6, 8));
  EXPECT_THAT(first_epoch(10, 0, 1, {.seed = ~std::uint64_t{0}}), ElementsAre(1, 3, 6, 9, 8, 4, 2, 7, 5, 0));

  std::uint64_t fingerprint = 0;
  for (const size_t index : first_epoch(60000, 0, 1, {.seed = 42})) fingerprint = fingerprint * 31 + index;
  EXPECT_EQ(fingerprint, 2593691497749231994u);
}

TEST(DistributedSampler, EveryResetIsTheNextEpoch) {
  DistributedSampler sampler(100, 0, 2, {.seed = 7});
  EXPECT_EQ(sampler.epoch(), 0u);
  const Indices epoch_0 = one_epoch(sampler);
  EXPECT_EQ(sampler.epoch(), 0u);
  const Indices epoch_1 = one_epoch(sampler);
  EXPECT_EQ(sampler.epoch(), 1u);
  EXPECT_NE(epoch_0, epoch_1);
  // The seed of an epoch is seed + epoch.
  EXPECT_THAT(first_epoch(100, 0, 2, {.seed = 8}), ElementsAreArray(epoch_1));
}

TEST(DistributedSampler, WithoutShufflingEpochsAreEqual) {
  DistributedSampler sampler(7, 1, 2, {.shuffle = false});
  EXPECT_THAT(one_epoch(sampler), ElementsAre(1, 3, 5, 0));
  EXPECT_THAT(one_epoch(sampler), ElementsAre(1, 3, 5, 0));
}

TEST(DistributedSampler, AnAbandonedEpochCounts) {
  DistributedSampler sampler(100, 0, 1);
  sampler.reset();
  sampler.next(10);
  sampler.reset();
  EXPECT_EQ(sampler.epoch(), 1u);
  EXPECT_EQ(remaining_indices(sampler).size(), 100u);
}

TEST(DistributedSampler, SetEpochChoosesTheNextReset) {
  DistributedSampler sampler(100, 1, 2);
  const Indices epoch_0 = one_epoch(sampler);
  const Indices epoch_1 = one_epoch(sampler);

  sampler.set_epoch(0);
  EXPECT_EQ(sampler.epoch(), 1u) << "the running epoch goes on until reset";
  EXPECT_EQ(one_epoch(sampler), epoch_0);
  EXPECT_EQ(sampler.epoch(), 0u);
  EXPECT_EQ(one_epoch(sampler), epoch_1);

  DistributedSampler resumed(100, 1, 2);
  resumed.set_epoch(1);
  EXPECT_EQ(resumed.epoch(), 1u);
  EXPECT_EQ(one_epoch(resumed), epoch_1);
}

TEST(DistributedSampler, CallingSetEpochEveryTimeChangesNothing) {
  DistributedSampler automatic(100, 0, 2);
  DistributedSampler habitual(100, 0, 2);
  for (size_t epoch = 0; epoch < 3; ++epoch) {
    habitual.set_epoch(epoch);
    EXPECT_EQ(one_epoch(habitual), one_epoch(automatic));
  }
}

TEST(DistributedSampler, CopiesShareTheirState) {
  DistributedSampler sampler(100, 0, 2);
  DistributedSampler copy_of_loader = sampler;
  sampler.set_epoch(5);
  copy_of_loader.reset();
  EXPECT_EQ(sampler.epoch(), 5u);

  DistributedSampler at_epoch_5(100, 0, 2);
  at_epoch_5.set_epoch(5);
  EXPECT_EQ(remaining_indices(copy_of_loader), one_epoch(at_epoch_5));
}

TEST(DistributedSampler, BatchesThatDoNotDivideEndWithASmallerOne) {
  DistributedSampler sampler(10, 0, 1, {.shuffle = false});
  sampler.reset();
  EXPECT_THAT(sampler.next(4), testing::Optional(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(sampler.next(4), testing::Optional(ElementsAre(4, 5, 6, 7)));
  EXPECT_THAT(sampler.next(4), testing::Optional(ElementsAre(8, 9)));
  EXPECT_EQ(sampler.next(4), std::nullopt);
  EXPECT_EQ(sampler.next(4), std::nullopt);
  sampler.reset();
  EXPECT_THAT(sampler.next(1000), testing::Optional(ElementsAreArray(iota(10))));
  EXPECT_EQ(sampler.next(1000), std::nullopt);
}

TEST(DistributedSampler, NextBeforeResetBeginsTheFirstEpoch) {
  DistributedSampler sampler(10, 0, 2, {.seed = 4});
  EXPECT_EQ(remaining_indices(sampler), first_epoch(10, 0, 2, {.seed = 4}));
  sampler.reset();
  EXPECT_EQ(sampler.epoch(), 1u);
}

TEST(DistributedSampler, ResetWithANewSizeStays) {
  DistributedSampler sampler(10, 0, 2, {.shuffle = false});
  sampler.reset(4);
  EXPECT_EQ(sampler.size(), 2u);
  EXPECT_THAT(remaining_indices(sampler), ElementsAre(0, 2));
  EXPECT_THAT(one_epoch(sampler), ElementsAre(0, 2));
  sampler.reset(0);
  EXPECT_EQ(sampler.next(1), std::nullopt);
}

TEST(DistributedSampler, AnEmptyDataSetGivesNoBatch) {
  for (const Tail tail : {Tail::pad, Tail::drop, Tail::uneven}) {
    DistributedSampler sampler(0, 1, 2, {.tail = tail});
    EXPECT_EQ(sampler.size(), 0u);
    sampler.reset();
    EXPECT_EQ(sampler.next(5), std::nullopt);
  }
}

TEST(DistributedSampler, RejectsArgumentsThatCannotWork) {
  EXPECT_THAT(usage_error_of([] { DistributedSampler(10, 0, 0); }), HasSubstr("replicas is 0"));
  EXPECT_THAT(usage_error_of([] { DistributedSampler(10, 0, -3); }), HasSubstr("replicas is -3"));
  EXPECT_THAT(usage_error_of([] { DistributedSampler(10, 4, 4); }),
              AllOf(HasSubstr("rank 4"), HasSubstr("a rank from 0 to 3")));
  EXPECT_THAT(usage_error_of([] { DistributedSampler(10, -1, 4); }), HasSubstr("rank -1"));
  EXPECT_THAT(usage_error_of([] { DistributedSampler(10, 0, 1).next(0); }), HasSubstr("batch size from 1"));
}

}  // namespace
}  // namespace fedrun
