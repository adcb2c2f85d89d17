// What training sees of samples, after each way to normalise them.
#include <fedrun/fl/tensor_clients.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace fedrun::fl {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::Pointwise;

// Two images of one channel and four pixels, both of the one client; the second is of one colour.
TensorClients two_images(const Normalisation& normalisation) {
  const data::ImageSet set{.name = "two",
                           .rows = 2,
                           .columns = 2,
                           .classes = 2,
                           .pixels = {0, 0, 255, 255, 51, 51, 51, 51},
                           .labels = {0, 1}};
  data::Partition client;
  client.append(std::vector<data::SampleIndex>{0, 1});
  return TensorClients(samples_of(set), client, samples_of(set), normalisation);
}

std::vector<float> values(const Samples& samples) {
  const torch::Tensor flat = samples.inputs.contiguous().flatten();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

TEST(TensorClients, PixelsBecomeNumbersUpToOne) {
  const std::vector<float> expected = {0, 0, 1, 1, 0.2F, 0.2F, 0.2F, 0.2F};
  EXPECT_THAT(values(two_images({}).of_client(0)), Pointwise(FloatEq(), expected));
}

TEST(TensorClients, ByChannel) {
  EXPECT_THAT(values(two_images(by_channel({0.5F}, {0.25F})).range(Split::test, 0, 1)), ElementsAre(-2, -2, 2, 2));
}

TEST(TensorClients, BySample) {
  const TensorClients clients = two_images(by_sample());
  EXPECT_THAT(values(clients.of_client(0)), ElementsAre(-1, -1, 1, 1, 0, 0, 0, 0));
  EXPECT_THAT(values(clients.range(Split::test, 0, 1)), ElementsAre(-1, -1, 1, 1));
  EXPECT_EQ(clients.of_client(0).inputs.sizes(), (std::vector<std::int64_t>{2, 1, 2, 2}));
}

}  // namespace
}  // namespace fedrun::fl
