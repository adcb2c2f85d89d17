// What is special about tensors on a GPU: streams, threads of autograd, launches, and the devices of single tensors.
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fedrun/core/error.h>
#include <fedrun/train/distributed_optimizer.h>
#include <fedrun/train/optimizer_state.h>
#include <fedrun/train/replica_check.h>
#include <fedrun/train/tensor_collectives.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stand_ins/stand_in_control.h"
#include "support/error_text.h"
#include "support/small_training.h"
#include "support/torch_device.h"

namespace fedrun {
namespace {

using stand_in::control;
using test::Batch;
using test::device;
using test::make_model;
using test::my_part;
using test::rank;
using test::ranks;
using test::replicas_are_equal;
using test::usage_error_of;
using test::whole_batch;
using test::world;
using testing::HasSubstr;

// What this thread does while it lives goes onto a stream of its own.
class OtherStream {
 public:
  OtherStream() : previous_(guard_.exchangeStream(guard_.getNewStream(device()))) {}
  ~OtherStream() { guard_.exchangeStream(previous_); }
  OtherStream(const OtherStream&) = delete;
  OtherStream& operator=(const OtherStream&) = delete;

 private:
  c10::impl::VirtualGuardImpl guard_{torch::kCUDA};
  c10::Stream previous_;
};

std::unique_ptr<torch::optim::Optimizer> make_sgd(std::vector<torch::Tensor> parameters) {
  return std::make_unique<torch::optim::SGD>(std::move(parameters), torch::optim::SGDOptions(0.1).momentum(0.9));
}

void train(torch::nn::Sequential& model, DistributedOptimizer& optimizer, int steps) {
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    my_part(whole_batch(step)).loss(model).backward();
    optimizer.step();
  }
}

TEST(GpuTensors, AreOnTheGpuOfTheLocalRank) {
  EXPECT_EQ(device(), torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(test::process().local_rank())));
  EXPECT_EQ(world().gpu(), test::process().local_rank());
}

TEST(GpuTensors, AreReadyWhenTheirStreamIsThere) {
  const OtherStream other;
  const torch::Tensor tensor = test::ones({1000});
  tensor.mul_(3);
  EXPECT_TRUE(torch::equal(allreduce(world(), tensor), test::full({1000}, 3.0)));
}

TEST(GpuTensors, TheStreamThatWaitsNeedNotBeTheOneThatSubmitted) {
  const torch::Tensor tensor = test::ones({1000});
  PendingTensor pending = allreduce_async(world(), tensor, {.op = ReduceOp::sum});
  const OtherStream other;
  EXPECT_TRUE(torch::equal(pending.wait().cpu(), torch::full({1000}, ranks(), torch::kFloat32)));
}

TEST(GpuTensors, BackwardMayRunOnAnotherStreamThanTheStep) {
  auto model = make_model();
  DistributedOptimizer optimizer(world(), make_sgd(model->parameters()), model->named_parameters());
  auto expected = make_model();
  DistributedOptimizer usual(world(), make_sgd(expected->parameters()), expected->named_parameters());
  train(expected, usual, 4);
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    {
      const OtherStream other;
      c10::Event ready(torch::kCUDA);
      ready.record(c10::impl::VirtualGuardImpl(torch::kCUDA).getDefaultStream(device()));
      ready.block(c10::impl::VirtualGuardImpl(torch::kCUDA).getStream(device()));
      my_part(whole_batch(step)).loss(model).backward();
    }
    optimizer.step();
  }
  EXPECT_TRUE(torch::equal(test::flat(*model), test::flat(*expected)));
  EXPECT_TRUE(replicas_are_equal(*model));
}

TEST(GpuTensors, ABucketIsPackedByOneLaunch) {
  auto model = make_model();
  DistributedOptimizer optimizer(world(), make_sgd(model->parameters()), model->named_parameters());
  train(model, optimizer, 2);
  ASSERT_EQ(optimizer.reducer().bucket_count(), 1U);
  optimizer.zero_grad();
  const torch::Tensor loss = my_part(whole_batch(0)).loss(model);
  const int launches = control().calls("cudaLaunchKernel");
  loss.backward();
  EXPECT_EQ(control().calls("cudaLaunchKernel") - launches, 1) << "of six parameters";
  optimizer.step();
}

TEST(GpuTensors, ParametersOfOneOptimizerMayLieOnDifferentDevices) {
  auto first = torch::nn::Linear(4, 8);  // on the CPU
  auto second = test::here(torch::nn::Linear(8, 2));
  for (torch::Tensor& parameter : first->parameters()) torch::nn::init::constant_(parameter, 0.1);
  for (torch::Tensor& parameter : second->parameters()) torch::nn::init::constant_(parameter, 0.1);
  torch::OrderedDict<std::string, torch::Tensor> names;
  for (const auto& parameter : first->named_parameters()) names.insert("first." + parameter.key(), parameter.value());
  for (const auto& parameter : second->named_parameters()) names.insert("second." + parameter.key(), parameter.value());
  DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(names.values(), 0.1), names);
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    const torch::Tensor hidden = first->forward(torch::full({3, 4}, rank() + 1.0)).tanh();
    second->forward(hidden.to(device())).square().sum().backward();
    optimizer.step();
  }
  EXPECT_TRUE(replicas_are_equal(*first));
  EXPECT_TRUE(replicas_are_equal(*second));
  EXPECT_GT((first->weight - 0.1).abs().max().item<double>(), 1e-4);
}

TEST(GpuTensors, GroupsMayMixDevices) {
  const Tensors reduced = grouped_allreduce(world(), {torch::ones({5}), test::ones({7})}, {.op = ReduceOp::sum});
  EXPECT_TRUE(reduced[0].device().is_cpu());
  EXPECT_EQ(reduced[1].device(), device());
  EXPECT_TRUE(torch::equal(reduced[0], torch::full({5}, ranks(), torch::kFloat32)));
  EXPECT_TRUE(torch::equal(reduced[1].cpu(), torch::full({7}, ranks(), torch::kFloat32)));
}

TEST(GpuTensors, AdasumGoesThroughTheHost) {
  const ReduceOptions adasum{.op = ReduceOp::adasum};
  const torch::Tensor same = test::full({6}, 2.0);
  EXPECT_TRUE(torch::allclose(allreduce(world(), same, adasum).cpu(), torch::full({6}, 2.0)));
  EXPECT_TRUE(allreduce_(world(), same, adasum).is_same(same));
  EXPECT_TRUE(torch::allclose(same.cpu(), torch::full({6}, 2.0)));
}

TEST(GpuTensors, OfAnotherGpuAreRefused) {
  const torch::Device wrong(torch::kCUDA, 7);
  const torch::Tensor elsewhere = torch::ones({3}).to(wrong);
  EXPECT_THAT(usage_error_of([&] { allreduce(world(), elsewhere); }),
              HasSubstr("its elements lie on GPU 7, and this rank uses GPU " + std::to_string(*world().gpu())));
  torch::nn::Linear model(2, 2);
  model->to(wrong);
  EXPECT_THAT(
      usage_error_of([&] { DistributedOptimizer(world(), make_sgd(model->parameters()), model->named_parameters()); }),
      HasSubstr("parameter 'weight' is on cuda:7, and this rank reduces elements of the CPU and of cuda:"));
  EXPECT_EQ(test::sum_over(world(), 1), ranks());
}

TEST(GpuTensors, RanksMustAgreeWhereTheyLie) {
  if (ranks() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const torch::Tensor tensor = rank() == 0 ? torch::ones({3}) : test::ones({3});
  EXPECT_THROW(allreduce(world(), tensor), MismatchError);
  EXPECT_EQ(test::sum_over(world(), 1), ranks());
}

TEST(GpuTensors, OptimizerStateComesToTheOwnGpu) {
  auto model = make_model();
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.01));
  if (rank() == 0) {
    my_part(whole_batch(0)).loss(model).backward();
    optimizer.step();
  }
  broadcast_optimizer_state(world(), optimizer);
  ASSERT_EQ(optimizer.state().size(), 6U);
  for (const auto& [key, state] : optimizer.state()) {
    EXPECT_EQ(static_cast<torch::optim::AdamParamState&>(*state).exp_avg().device(), device());
  }
}

TEST(GpuTensors, ReplicasAreCompared) {
  auto model = make_model();
  ReplicaCheck check(world(), *model, {.every = 1});
  check.step();
  if (ranks() == 1) return;
  const torch::NoGradGuard no_grad;
  if (rank() == 1) model->parameters()[2][0][0] += 1;
  EXPECT_THROW(check.step(), MismatchError);
}

}  // namespace
}  // namespace fedrun
