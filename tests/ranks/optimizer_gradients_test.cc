// Gradients that come by other ways than one backward() before each step: replicas stay equal, and nothing is lost.
#include <fedrun/core/error.h>
#include <fedrun/train/distributed_optimizer.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "support/rank_test.h"
#include "support/small_training.h"
#include "support/torch_device.h"

namespace fedrun {
namespace {

using test::make_model;
using test::my_part;
using test::rank;
using test::ranks;
using test::relative_error;
using test::replicas_are_equal;
using test::whole_batch;
using test::world;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::unique_ptr<torch::optim::Optimizer> sgd(const torch::nn::Module& model) {
  return std::make_unique<torch::optim::SGD>(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
}

// One weight of value 1 whose gradient is what backward() is given.
struct OneWeight {
  torch::nn::Linear model = test::here(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  std::optional<DistributedOptimizer> optimizer;

  explicit OneWeight(const DistributedOptimizerOptions& options = {}) {
    torch::nn::init::ones_(model->weight);
    optimizer.emplace(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 1.0), model->named_parameters(),
                      options);
  }
  void backward(double gradient) { (model->weight * gradient).sum().backward(); }
  void backward_alone(double gradient) {
    const auto guard = optimizer->no_sync();
    backward(gradient);
  }
  void put(double gradient) { model->weight.mutable_grad() = test::full({1, 1}, static_cast<float>(gradient)); }
  double value() const { return model->weight.item<double>(); }
};

double mean_of_ranks() { return (ranks() - 1) / 2.0; }

TEST(OptimizerGradients, ThatWerePutInPlaceByHandAreReduced) {
  OneWeight weight;
  for (int step = 0; step < 3; ++step) {  // without a place in a bucket, and with one
    const double before = weight.value();
    weight.optimizer->zero_grad();
    weight.put(rank());
    weight.optimizer->step();
    EXPECT_EQ(weight.value(), before - mean_of_ranks()) << "in step " << step;
  }
}

TEST(OptimizerGradients, ZerosForAnEmptyBatchCountAsZeros) {
  OneWeight weight({.op = ReduceOp::sum});
  weight.backward(8);
  weight.optimizer->step();
  const double before = weight.value();
  weight.optimizer->zero_grad();
  if (rank() == 0) {
    weight.put(0);
  } else {
    weight.backward(1);
  }
  weight.optimizer->step();
  EXPECT_EQ(weight.value(), before - (ranks() - 1));
  EXPECT_TRUE(replicas_are_equal(*weight.model));
}

TEST(OptimizerGradients, OfAutogradGradBelongToTheCaller) {
  if (test::on_gpu()) GTEST_SKIP() << "the stand-in for a GPU has no second derivatives of all operations";
  auto model = make_model();
  auto alone = make_model();
  DistributedOptimizer optimizer(world(), sgd(*model), model->named_parameters());
  auto plain = sgd(*alone);
  const auto penalised = [](torch::nn::Sequential& of, const test::Batch& batch) {
    const torch::Tensor loss = batch.loss(of);
    torch::Tensor penalty = torch::zeros({});
    for (const torch::Tensor& gradient : torch::autograd::grad({loss}, of->parameters(), {}, true, true)) {
      penalty = penalty + gradient.square().sum();
    }
    return loss + penalty;
  };
  for (int step = 0; step < 3; ++step) {  // all ranks have the same batch: a penalty is not the mean of its parts
    optimizer.zero_grad();
    penalised(model, whole_batch(step)).backward();
    const auto kept = torch::autograd::grad({whole_batch(step).loss(model)}, model->parameters());
    EXPECT_EQ(kept.size(), model->parameters().size());
    optimizer.step();
    plain->zero_grad();
    penalised(alone, whole_batch(step)).backward();
    plain->step();
  }
  EXPECT_LT(relative_error(*model, *alone), 1e-5);
}

TEST(OptimizerGradients, ClosuresDecideTheSameOnAllRanks) {
  auto model = make_model();
  DistributedOptimizer optimizer(
      world(),
      std::make_unique<torch::optim::LBFGS>(model->parameters(),
                                            torch::optim::LBFGSOptions(1).max_iter(8).line_search_fn("strong_wolfe")),
      model->named_parameters());
  const auto batch = my_part(whole_batch(0));
  for (int step = 0; step < 3; ++step) {
    const torch::Tensor loss = optimizer.step([&] {
      optimizer.zero_grad();
      torch::Tensor own = batch.loss(model);
      own.backward();
      return own;
    });
    if (step == 0) {
      EXPECT_NEAR(
          loss.item<double>(),
          torch::cross_entropy_loss(make_model()->forward(whole_batch(0).input), whole_batch(0).target).item<double>(),
          1e-5);
    }
  }
  EXPECT_TRUE(replicas_are_equal(*model));
}

TEST(OptimizerGradients, AreReducedAgainAfterAStepWasLeftOut) {
  OneWeight weight;
  weight.backward(std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isinf(weight.optimizer->clip_gradient_norm(1)));
  weight.optimizer->zero_grad();
  weight.backward_alone(rank());
  weight.optimizer->step();
  EXPECT_EQ(weight.value(), 1 - mean_of_ranks());
}

TEST(OptimizerGradients, OfNoSyncAfterSynchronizeAreReducedToo) {
  OneWeight weight;
  weight.backward(0);
  weight.optimizer->synchronize();
  weight.backward_alone(rank());
  weight.optimizer->step();
  EXPECT_EQ(weight.value(), 1 - mean_of_ranks());
}

TEST(OptimizerGradients, OfParameterGroupsThatAreAddedLaterAreAnError) {
  OneWeight weight;
  auto late = test::here(torch::nn::Linear(1, 1));
  weight.optimizer->inner().add_param_group(torch::optim::OptimizerParamGroup(late->parameters()));
  weight.backward(1);
  EXPECT_THAT([&] { weight.optimizer->step(); },
              ThrowsMessage<UsageError>(HasSubstr("has 2 parameter groups, and had 1 when it was wrapped")));
}

}  // namespace
}  // namespace fedrun
