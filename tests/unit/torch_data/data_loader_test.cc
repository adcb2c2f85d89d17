// Runs LibTorch's own data loader over our data set and sampler: the sampler fits it by shape alone, which only this
// shows.
#include <fedrun/core/error.h>
#include <fedrun/data/image_dataset.h>
#include <fedrun/sampler/distributed_sampler.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace fedrun::data {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

// Image i is a single pixel of value i, so that a batch shows which images it holds.
ImageSet numbered_images(size_t count) {
  ImageSet set{.name = "numbered", .rows = 1, .columns = 1, .classes = 10};
  for (size_t i = 0; i < count; ++i) {
    set.pixels.push_back(static_cast<std::uint8_t>(i));
    set.labels.push_back(static_cast<std::uint8_t>(i % 10));
  }
  return set;
}

using Batches = std::vector<std::vector<int>>;

std::vector<int> numbers_in(const torch::data::Example<>& batch) {
  const auto numbers = batch.data.mul(255).round().to(torch::kInt32).flatten();
  return {numbers.data_ptr<int>(), numbers.data_ptr<int>() + numbers.numel()};
}

template <typename Loader>
Batches one_epoch(Loader& loader) {
  Batches batches;
  for (const auto& batch : loader) batches.push_back(numbers_in(batch));
  return batches;
}

Batches expected_epoch(size_t count, int rank, int replicas, size_t epoch, size_t batch_size) {
  DistributedSampler sampler(count, rank, replicas);
  sampler.set_epoch(epoch);
  sampler.reset();
  Batches batches;
  while (const auto indices = sampler.next(batch_size)) batches.emplace_back(indices->begin(), indices->end());
  return batches;
}

TEST(DataLoader, WorksAsTheDesignShows) {
  auto loader = torch::data::make_data_loader(ImageDataset(numbered_images(7)),
                                              DistributedSampler(7, 1, 2, {.shuffle = false}), 3);
  EXPECT_THAT(one_epoch(*loader), ElementsAre(ElementsAre(1, 3, 5), ElementsAre(0)));
}

TEST(DataLoader, EveryIterationIsTheNextEpoch) {
  DistributedSampler sampler(100, 0, 2);
  auto loader = torch::data::make_data_loader(ImageDataset(numbered_images(100)), sampler, 8);
  EXPECT_THAT(one_epoch(*loader), ElementsAreArray(expected_epoch(100, 0, 2, 0, 8)));
  EXPECT_EQ(sampler.epoch(), 0u);
  EXPECT_THAT(one_epoch(*loader), ElementsAreArray(expected_epoch(100, 0, 2, 1, 8)));
  EXPECT_EQ(sampler.epoch(), 1u);
}

TEST(DataLoader, SetEpochReachesTheLoadersCopy) {
  DistributedSampler sampler(100, 1, 2);
  auto loader = torch::data::make_data_loader(ImageDataset(numbered_images(100)), sampler, 8);
  sampler.set_epoch(6);
  EXPECT_THAT(one_epoch(*loader), ElementsAreArray(expected_epoch(100, 1, 2, 6, 8)));
}

// Each worker has a copy of the data set; the batches arrive in the sampler's order all the same.
TEST(DataLoader, WorkerThreadsChangeNothing) {
  auto loader = torch::data::make_data_loader(ImageDataset(numbered_images(200)), DistributedSampler(200, 0, 2),
                                              torch::data::DataLoaderOptions(7).workers(3));
  for (size_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_THAT(one_epoch(*loader), ElementsAreArray(expected_epoch(200, 0, 2, epoch, 7))) << epoch;
  }
}

TEST(DataLoader, DropLastLeavesOutTheSmallerBatch) {
  auto loader =
      torch::data::make_data_loader(ImageDataset(numbered_images(10)), DistributedSampler(10, 0, 1, {.shuffle = false}),
                                    torch::data::DataLoaderOptions(4).drop_last(true));
  EXPECT_THAT(one_epoch(*loader), ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
}

TEST(DataLoader, ARankWithoutSamplesGetsNoBatch) {
  auto loader = torch::data::make_data_loader(ImageDataset(numbered_images(2)),
                                              DistributedSampler(2, 2, 3, {.tail = Tail::uneven}), 4);
  EXPECT_EQ(one_epoch(*loader).size(), 0u);
}

TEST(DataLoader, ASamplerLargerThanTheSetIsAnError) {
  auto loader = torch::data::make_data_loader(ImageDataset(numbered_images(5)),
                                              DistributedSampler(6, 0, 1, {.shuffle = false}), 3);
  EXPECT_THROW(one_epoch(*loader), UsageError);
}

}  // namespace
}  // namespace fedrun::data
