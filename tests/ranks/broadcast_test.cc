#include <fedrun/core/error.h>
#include <fedrun/train/broadcast.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/rank_test.h"
#include "support/torch_device.h"

namespace fedrun {
namespace {

using test::world;

TEST(BroadcastParameters, CopiesParametersAndBuffers) {
  for (int root = 0; root < world().size(); ++root) {
    auto module = test::here(torch::nn::BatchNorm1d(3));
    {
      const torch::NoGradGuard no_grad;
      for (auto& tensor : module->parameters()) tensor.fill_(world().rank() + 1);
      for (auto& tensor : module->buffers()) tensor.fill_(world().rank() + 10);
    }
    broadcast_parameters(world(), *module, {.root = root});
    for (const auto& tensor : module->parameters()) EXPECT_TRUE(tensor.eq(root + 1).all().item<bool>());
    for (const auto& tensor : module->buffers()) EXPECT_TRUE(tensor.eq(root + 10).all().item<bool>());
  }
}

TEST(BroadcastTensors, TakesAnyTypeStrideAndSize) {
  const double mark = world().rank() == 0 ? 1 : 0;
  const std::vector<std::pair<std::string, torch::Tensor>> tensors = {
      {"transposed", test::full({2, 3}, mark).t()},
      {"half", test::full({5}, mark, torch::kFloat16)},
      {"bool", test::full({2}, mark != 0, torch::kBool)},
      {"long", test::full({2}, static_cast<int64_t>(mark), torch::kInt64)},
      {"scalar", test::full({}, mark, torch::kFloat64)},
      {"empty", test::empty({0, 4})},
      {"every second", test::full({6}, mark).slice(0, 0, 6, 2)}};
  broadcast_tensors(world(), tensors);
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(tensor.to(torch::kFloat64).eq(1).all().item<bool>()) << name;
}

TEST(BroadcastTensors, NamesWhatDiffers) {
  if (world().size() == 1) GTEST_SKIP() << "one rank cannot disagree";
  const torch::Tensor tensor = test::zeros({2, world().rank() == 0 ? 3 : 4});
  try {
    broadcast_tensors(world(), {{"weight", tensor}});
    FAIL() << "no error";
  } catch (const MismatchError& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("rank 0 has weight f32[2, 3]" + test::place() + ", rank 1 has weight f32[2, 4]"));
  }
}

TEST(BroadcastTensors, RefusesTypesThatItCannotSend) {
  EXPECT_THROW(broadcast_tensors(world(), {{"complex", test::zeros({2}, torch::kComplexFloat)}}), UsageError);
}

}  // namespace
}  // namespace fedrun
