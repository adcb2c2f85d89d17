// Models of hundreds of tensors: small ones travel together, large ones alone, and each arrives where it belongs.
#include <fedrun/core/error.h>
#include <fedrun/train/broadcast.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/rank_test.h"

namespace fedrun {
namespace {

using test::rank;
using test::ranks;
using test::sum_over;
using test::usage_error_of;
using test::world;
using testing::HasSubstr;

// Small ones of every type and size; every 20th is larger than what travels together, some have no elements.
torch::Tensor tensor_of(int number, int rank) {
  constexpr std::array types = {torch::kFloat32, torch::kUInt8, torch::kFloat64, torch::kBFloat16, torch::kInt64};
  const auto type = types[static_cast<std::size_t>(number) % types.size()];
  const std::int64_t size = number % 20 == 19 ? 300'000 : number % 20 == 10 ? 0 : 1 + 7 * number;
  const torch::Tensor tensor = torch::full({2, size}, (number + 3 * rank) % 50, type);
  return number % 3 == 0 ? tensor.t() : tensor;
}

class ManyTensors : public torch::nn::Module {
 public:
  ManyTensors() {
    for (int number = 0; number < 200; ++number) {
      register_buffer("tensor " + std::to_string(number), tensor_of(number, rank()));
    }
  }
};

TEST(BroadcastMany, EveryTensorArrivesWhereItBelongs) {
  for (int root = 0; root < ranks(); ++root) {
    const ManyTensors module;
    broadcast_parameters(world(), module, {.root = root});
    const auto buffers = module.buffers();
    ASSERT_EQ(buffers.size(), 200);
    for (int number = 0; number < 200; ++number) {
      const torch::Tensor& tensor = buffers[static_cast<std::size_t>(number)];
      ASSERT_TRUE(torch::equal(tensor, tensor_of(number, root))) << "tensor " << number << ", root " << root;
      ASSERT_EQ(tensor.strides(), tensor_of(number, root).strides());
    }
  }
}

TEST(BroadcastMany, FillsSeveralParcels) {
  NamedTensors tensors;  // 100 of 200 KB
  for (int i = 0; i < 100; ++i) tensors.emplace_back(std::to_string(i), torch::full({50'000}, 1.0F + i + rank()));
  broadcast_tensors(world(), tensors, {.root = ranks() - 1, .name = "many"});
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(tensors[static_cast<std::size_t>(i)].second.eq(i + ranks()).all().item<bool>());
}

TEST(BroadcastMany, MayShareMemory) {
  const torch::Tensor tied = torch::full({4}, rank() + 1.0F);
  broadcast_tensors(world(), {{"one", tied}, {"other", tied}, {"part", tied.slice(0, 0, 4, 2)}});
  EXPECT_TRUE(tied.eq(1).all().item<bool>());
}

TEST(BroadcastMany, AutogradNoticesThatValuesChange) {
  if (ranks() == 1) GTEST_SKIP() << "nothing changes";
  const torch::Tensor weight = torch::full({2}, rank() + 1.0F, torch::requires_grad());
  const torch::Tensor loss = (weight * weight).sum();
  broadcast_tensors(world(), {{"weight", weight}});
  if (rank() == 0) {
    loss.backward();
  } else {
    EXPECT_THROW(loss.backward(), c10::Error) << "the gradient would be of other values";
  }
}

TEST(BroadcastMany, NamesTensorsThatCannotBeWritten) {
  EXPECT_THAT(usage_error_of([] {
                broadcast_tensors(world(), {{"wide", torch::zeros({1}).expand({4})}});
              }),
              HasSubstr("elements of tensor 'wide' share memory"));
  EXPECT_THAT(usage_error_of([] {
                broadcast_tensors(world(), {{"hole", torch::Tensor()}});
              }),
              HasSubstr("broadcast of 'hole': the tensor is undefined"));
  EXPECT_THAT(usage_error_of([] {
                broadcast_tensors(world(), {{"x", torch::zeros({3})}}, {.root = ranks()});
              }),
              HasSubstr("root"));
  EXPECT_EQ(sum_over(world(), 1), ranks());
}

}  // namespace
}  // namespace fedrun
