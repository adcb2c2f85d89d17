// Models whose BatchNorm layers are replaced: same tensors, same names, statistics of all ranks.
#include <fedrun/models/convnet.h>
#include <fedrun/models/registry.h>
#include <fedrun/models/resnet.h>
#include <fedrun/train/broadcast.h>
#include <fedrun/train/convert_sync_batch_norm.h>
#include <fedrun/train/distributed_optimizer.h>
#include <fedrun/train/sync_batch_norm.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/rank_test.h"

namespace fedrun {
namespace {

using namespace test;
using testing::AllOf;
using testing::HasSubstr;
using torch::nn::Module;

template <typename Layer>
int count_of(const Module& module) {
  int count = 0;
  for (const auto& part : module.modules(/*include_self=*/false)) count += part->as<Layer>() != nullptr;
  return count;
}

torch::nn::Sequential small_network() {
  return torch::nn::Sequential({{"linear", torch::nn::Linear(3, 4)},
                                {"norm", torch::nn::BatchNorm1d(4)},
                                {"relu", torch::nn::ReLU()},
                                {"last", torch::nn::Linear(4, 2)}});
}

TEST(ConvertSyncBatchNorm, KeepsTensorsNamesAndMode) {
  torch::nn::Sequential network = small_network();
  network->eval();
  network->named_parameters()["norm.bias"].set_requires_grad(false);
  const auto parameters = network->named_parameters();
  const auto buffers = network->named_buffers();
  convert_sync_batch_norm(*network, world());
  EXPECT_EQ(network->named_parameters().keys(), parameters.keys());
  EXPECT_EQ(network->named_buffers().keys(), buffers.keys());
  for (const auto& parameter : network->named_parameters()) {
    EXPECT_TRUE(parameter.value().is_same(parameters[parameter.key()])) << parameter.key();
  }
  for (const auto& buffer : network->named_buffers()) {
    EXPECT_TRUE(buffer.value().is_same(buffers[buffer.key()])) << buffer.key();
  }
  EXPECT_FALSE(network->named_parameters()["norm.bias"].requires_grad());
  EXPECT_EQ(count_of<SyncBatchNorm>(*network), 1);
  EXPECT_EQ(count_of<torch::nn::BatchNorm1d>(*network), 0);
  EXPECT_FALSE(network->named_modules()["norm"]->is_training());
}

TEST(ConvertSyncBatchNorm, KeepsOptions) {
  torch::nn::Sequential network(
      torch::nn::BatchNorm3d(torch::nn::BatchNormOptions(2).eps(0.5).momentum(std::nullopt).affine(false)));
  convert_sync_batch_norm(*network, world());
  const auto* layer = network[0]->as<SyncBatchNorm>();
  ASSERT_NE(layer, nullptr);
  EXPECT_EQ(layer->options.eps(), 0.5);
  EXPECT_EQ(layer->options.momentum(), std::nullopt);
  EXPECT_FALSE(layer->weight.defined());
  EXPECT_TRUE(layer->running_mean.defined());
}

TEST(ConvertSyncBatchNorm, NormalisesOverAllRanksAfterwards) {
  torch::nn::Sequential network(torch::nn::BatchNorm1d(torch::nn::BatchNormOptions(1).momentum(1)));
  convert_sync_batch_norm(*network, world());
  network->forward(torch::tensor({{1.F * rank()}, {1.F * rank() + 2}}));
  EXPECT_FLOAT_EQ(network->named_buffers()["0.running_mean"].item<float>(), 1 + (ranks() - 1) / 2.F);
}

TEST(ConvertSyncBatchNorm, LeavesALayerThatOccursTwiceOneLayer) {
  const torch::nn::BatchNorm1d shared(1);
  torch::nn::Sequential network(shared, shared);
  convert_sync_batch_norm(*network, world());
  EXPECT_EQ(network[0], network[1]);
  EXPECT_EQ(count_of<torch::nn::BatchNorm1d>(*network), 0);
}

TEST(ConvertSyncBatchNorm, ReachesEveryLayerOfOurModels) {
  const auto expect_layers = [](const char* name, int layers) {
    const models::Model model = models::make_model(name);
    ASSERT_EQ(count_of<torch::nn::BatchNorm2d>(*model), layers) << name;
    const auto keys = model->named_parameters().keys();
    convert_sync_batch_norm(*model, world());
    EXPECT_EQ(count_of<torch::nn::BatchNorm2d>(*model), 0) << name;
    EXPECT_EQ(count_of<SyncBatchNorm>(*model), layers) << name;
    EXPECT_EQ(model->named_parameters().keys(), keys) << name;
  };
  expect_layers("convnet", 2);
  expect_layers("mlp", 0);
  expect_layers("resnet18", 20);
  expect_layers("resnet50", 53);
}

// A model that the user has written with members of Torch's types.
struct TypedMembersImpl : Module {
  TypedMembersImpl() {
    register_module("norm", norm);
    register_module("inner", inner);
    register_module("list", list);
  }
  torch::nn::BatchNorm1d norm{2};
  torch::nn::Sequential inner{torch::nn::BatchNorm1d(2)};
  torch::nn::ModuleList list{torch::nn::BatchNorm2d(2)};
};
TORCH_MODULE(TypedMembers);

TEST(ConvertSyncBatchNorm, NamesMembersThatItCannotReplaceAndChangesNothing) {
  TypedMembers model;
  EXPECT_EQ(
      usage_error_of([&] { convert_sync_batch_norm(*model, world()); }),
      "convert_sync_batch_norm: cannot replace norm, list.0, because only layers inside a torch::nn::Sequential "
      "can be: declare these members as fedrun::SyncBatchNorm, which needs no group before this call, or put them "
      "into a Sequential");
  EXPECT_EQ(count_of<SyncBatchNorm>(*model), 0);
  EXPECT_THAT(usage_error_of([] { convert_sync_batch_norm(*torch::nn::BatchNorm1d(2), world()); }),
              HasSubstr("the module itself"));
}

struct SyncedMembersImpl : Module {
  SyncedMembersImpl() { register_module("norm", norm); }
  torch::Tensor forward(const torch::Tensor& input) { return norm->forward(input); }
  SyncBatchNorm norm{torch::nn::BatchNormOptions(1).momentum(1)};
};
TORCH_MODULE(SyncedMembers);

TEST(ConvertSyncBatchNorm, GivesAGroupToMembersThatAreSyncBatchNorm) {
  SyncedMembers model;
  const torch::Tensor input = torch::tensor({{1.F * rank()}, {1.F * rank() + 2}});
  model->forward(input);
  EXPECT_FLOAT_EQ(model->norm->running_mean.item<float>(), 1 + rank());
  convert_sync_batch_norm(*model, world());
  model->forward(input);
  EXPECT_FLOAT_EQ(model->norm->running_mean.item<float>(), 1 + (ranks() - 1) / 2.F);
}

TEST(ConvertSyncBatchNorm, PutsThePathOfTheLayerIntoErrors) {
  torch::nn::Sequential network = small_network();
  convert_sync_batch_norm(*network, world());
  EXPECT_THAT(usage_error_of([&] {
                network->named_modules()["norm"]->as<SyncBatchNorm>()->forward(torch::ones({2, 3}));
              }),
              HasSubstr("SyncBatchNorm norm: the input has the shape [2, 3]"));
}

// The whole of it: ranks that train together on parts do what one would do on the whole batch.
TEST(ConvertSyncBatchNorm, TrainsLikeOneRankWithTheWholeBatch) {
  constexpr int64_t rows = 2;
  const auto make = [] {
    torch::manual_seed(5);
    models::ResNet model(models::ResNetOptions{.depth = 18, .classes = 3});
    model->to(torch::kFloat64);
    return model;
  };
  models::ResNet whole = make();
  models::ResNet part = make();
  const auto sgd = [](const models::ResNet& model) {
    return std::make_unique<torch::optim::SGD>(model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  };
  const auto optimizer = sgd(whole);
  auto inner = sgd(part);  // made before the conversion, and valid afterwards
  convert_sync_batch_norm(*part, world());
  DistributedOptimizer distributed(world(), std::move(inner), part->named_parameters());

  for (int step = 0; step < 2; ++step) {
    const torch::Tensor images = torch::randn({rows * ranks(), 3, 8, 8}, torch::kFloat64);
    const torch::Tensor labels = torch::arange(rows * ranks()).remainder(3);
    broadcast_tensors(world(), {{"images", images}});
    const int64_t first = rows * rank();

    optimizer->zero_grad();
    torch::cross_entropy_loss(whole->forward(images), labels).backward();
    optimizer->step();
    distributed.zero_grad();
    torch::cross_entropy_loss(part->forward(images.slice(0, first, first + rows)), labels.slice(0, first, first + rows))
        .backward();
    distributed.step();
  }
  const auto parameters = part->named_parameters();
  for (const auto& expected : whole->named_parameters()) {
    EXPECT_TRUE(torch::allclose(parameters[expected.key()], expected.value(), 1e-7, 1e-9)) << expected.key();
  }
  const auto buffers = part->named_buffers();
  for (const auto& expected : whole->named_buffers()) {
    EXPECT_TRUE(torch::allclose(buffers[expected.key()], expected.value(), 1e-7, 1e-9)) << expected.key();
  }
}

}  // namespace
}  // namespace fedrun
