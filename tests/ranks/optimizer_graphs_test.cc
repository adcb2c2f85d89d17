// Graphs that change from step to step and from rank to rank: nothing hangs, nothing drifts apart.
#include <fedrun/core/error.h>
#include <fedrun/train/broadcast.h>
#include <fedrun/train/distributed_optimizer.h>
#include <fedrun/train/join_scope.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/rank_test.h"
#include "support/small_training.h"
#include "support/torch_device.h"

namespace fedrun {
namespace {

using test::flat;
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

std::unique_ptr<torch::optim::Optimizer> sgd(const torch::nn::Module& model, double weight_decay = 0) {
  return std::make_unique<torch::optim::SGD>(model.parameters(),
                                             torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(weight_decay));
}

TEST(OptimizerGraphs, ParametersThatNobodyUsesStayWithoutAGradient) {
  // With weight decay, a gradient of zeros would move them; one process leaves them alone.
  auto used = test::here(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  auto unused = test::here(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  torch::nn::Sequential model(used, unused);
  const torch::Tensor before = unused->weight.detach().clone();
  DistributedOptimizer optimizer(world(), sgd(*model, 0.5), model->named_parameters());
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    used->forward(test::ones({1, 1})).sum().backward();
    optimizer.step();
  }
  EXPECT_FALSE(unused->weight.grad().defined());
  EXPECT_TRUE(torch::equal(unused->weight, before));
}

TEST(OptimizerGraphs, EachStepMayUseOtherParametersOnEachRank) {
  auto model = make_model();
  DistributedOptimizer optimizer(world(), sgd(*model), model->named_parameters(),
                                 {.buckets = {.first_bytes = 1, .bytes = 1}});
  for (int step = 0; step < 12; ++step) {
    optimizer.zero_grad();
    const auto parameters = model->parameters();
    torch::Tensor loss = test::zeros({});
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if ((step + static_cast<int>(i) + rank()) % 3 == 0) loss = loss + parameters[i].square().sum();
    }
    if (loss.requires_grad()) loss.backward();
    optimizer.step();
    ASSERT_TRUE(replicas_are_equal(*model)) << step;
  }
}

TEST(OptimizerGraphs, LayersFreezeAndThaw) {
  auto alone = make_model();
  auto alone_optimizer = sgd(*alone);
  auto together = make_model();
  DistributedOptimizer optimizer(world(), sgd(*together), together->named_parameters());
  for (int step = 0; step < 9; ++step) {
    for (auto& model : {alone, together}) {
      // First the head alone, then all of it, then all but the head.
      for (std::size_t i = 0; i < 6; ++i) {
        torch::Tensor parameter = model->parameters()[i];
        parameter.set_requires_grad(step < 3 ? i >= 4 : step < 6 || i < 4);
      }
    }
    alone_optimizer->zero_grad();
    whole_batch(step).loss(alone).backward();
    alone_optimizer->step();
    optimizer.zero_grad();
    my_part(whole_batch(step)).loss(together).backward();
    optimizer.step();
    ASSERT_LE(relative_error(*together, *alone), 1e-5) << step;
  }
  EXPECT_TRUE(replicas_are_equal(*together));
}

TEST(OptimizerGraphs, TwoOptimizersTakeTurns) {
  // As GANs do: the loss of the generator goes through the discriminator, which is frozen meanwhile.
  torch::manual_seed(3);
  auto generator = test::here(torch::nn::Linear(4, 4));
  auto discriminator = test::here(torch::nn::Linear(4, 1));
  DistributedOptimizer of_generator(world(), sgd(*generator), generator->named_parameters());
  DistributedOptimizer of_discriminator(world(), sgd(*discriminator), discriminator->named_parameters());
  const auto set_frozen = [&](bool is_frozen) {
    for (auto& parameter : discriminator->parameters()) parameter.set_requires_grad(!is_frozen);
  };
  for (int step = 0; step < 5; ++step) {
    const torch::Tensor noise = test::full({2, 4}, 0.1 * (rank() + 1));
    set_frozen(false);
    of_discriminator.zero_grad();
    (discriminator->forward(test::ones({2, 4})).mean() -
     discriminator->forward(generator->forward(noise).detach()).mean())
        .backward();
    of_discriminator.step();
    set_frozen(true);
    of_generator.zero_grad();
    discriminator->forward(generator->forward(noise)).mean().backward();
    of_generator.step();
  }
  EXPECT_TRUE(replicas_are_equal(*generator));
  EXPECT_TRUE(replicas_are_equal(*discriminator));
}

TEST(OptimizerGraphs, TwoOptimizersShareOneBackwardInAnyOrder) {
  auto left = test::here(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  auto right = test::here(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  DistributedOptimizer of_left(world(), sgd(*left), left->named_parameters(), {.op = ReduceOp::sum});
  DistributedOptimizer of_right(world(), sgd(*right), right->named_parameters(), {.op = ReduceOp::sum});
  for (int step = 0; step < 4; ++step) {
    of_left.zero_grad();
    of_right.zero_grad();
    // Odd ranks meet the layers the other way round, so their buckets complete in another order.
    const auto& first = rank() % 2 == 0 ? left : right;
    const auto& second = rank() % 2 == 0 ? right : left;
    auto inner = first;
    auto outer = second;
    outer->forward(inner->forward(test::ones({1, 1}))).sum().backward();
    of_left.synchronize();
    of_right.synchronize();
    EXPECT_NEAR(left->weight.grad().item<float>(), ranks() * right->weight.item<float>(), 1e-5);
    EXPECT_NEAR(right->weight.grad().item<float>(), ranks() * left->weight.item<float>(), 1e-5);
  }
}

torch::nn::Embedding make_embedding(bool sparse) {
  torch::manual_seed(5);
  return test::here(torch::nn::Embedding(torch::nn::EmbeddingOptions(6, 2).sparse(sparse)));
}

// Rank r looks up rows r and r + 1, and row 0 on all ranks.
torch::Tensor rows_of_rank() { return test::tensor({0, rank(), rank() + 1}); }

class SparseGradients : public testing::TestWithParam<bool> {};

TEST_P(SparseGradients, EqualDenseOnes) {
  if (test::on_gpu()) GTEST_SKIP() << "the stand-in for a GPU has no sparse tensors";
  const auto train = [](bool sparse, bool sparse_as_dense) {
    auto model = make_embedding(sparse);
    DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 0.5),
                                   model->named_parameters(), {.sparse_as_dense = sparse_as_dense});
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      model->forward(rows_of_rank()).square().sum().backward();
      optimizer.step();
    }
    EXPECT_EQ(model->weight.grad().is_sparse(), sparse && !sparse_as_dense);
    EXPECT_TRUE(replicas_are_equal(*model));
    return flat(*model);
  };
  EXPECT_TRUE(torch::allclose(train(true, GetParam()), train(false, false), 1e-6, 1e-7));
}

INSTANTIATE_TEST_SUITE_P(AsDense, SparseGradients, testing::Bool());

TEST(OptimizerGraphs, SparseGradientsOfOneRankReachAll) {
  if (test::on_gpu()) GTEST_SKIP() << "the stand-in for a GPU has no sparse tensors";
  auto model = make_embedding(true);
  DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 0.5),
                                 model->named_parameters(), {.op = ReduceOp::sum});
  if (rank() == 0) model->forward(test::tensor({3, 3})).sum().backward();
  optimizer.synchronize();
  ASSERT_TRUE(model->weight.grad().is_sparse());
  torch::Tensor expected = test::zeros({6, 2});
  expected[3].fill_(2);
  EXPECT_TRUE(torch::equal(model->weight.grad().to_dense(), expected));
}

TEST(OptimizerGraphs, SparseAndDenseGradientsMix) {
  if (test::on_gpu()) GTEST_SKIP() << "the stand-in for a GPU has no sparse tensors";
  auto bag = test::here(torch::nn::EmbeddingBag(torch::nn::EmbeddingBagOptions(5, 3).mode(torch::kSum).sparse(true)));
  auto head = test::here(torch::nn::Linear(3, 1));
  broadcast_parameters(world(), *bag);
  broadcast_parameters(world(), *head);
  torch::OrderedDict<std::string, torch::Tensor> names;
  names.insert("bag", bag->weight);
  names.insert("weight", head->weight);
  names.insert("bias", head->bias);
  DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(names.values(), 0.1), names);
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    head->forward(bag->forward(torch::tensor({{0, rank()}, {rank(), 1}}))).sum().backward();
    optimizer.step();
  }
  EXPECT_TRUE(replicas_are_equal(*bag));
  EXPECT_TRUE(replicas_are_equal(*head));
}

TEST(OptimizerGraphs, AdasumAveragesEqualStepsAndAddsOrthogonalOnes) {
  auto model = test::here(torch::nn::Linear(torch::nn::LinearOptions(4, 1).bias(false)));
  torch::nn::init::zeros_(model->weight);
  DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 1.0),
                                 model->named_parameters(), {.op = ReduceOp::adasum});
  model->forward(test::ones({1, 4})).sum().backward();
  optimizer.step();
  EXPECT_TRUE(torch::allclose(model->weight, test::full({1, 4}, -1.0F)));
  optimizer.zero_grad();
  torch::Tensor own = test::zeros({1, 4});
  own[0][rank()] = 1;
  model->forward(own).sum().backward();
  optimizer.step();
  torch::Tensor expected = test::full({1, 4}, -1.0F);
  for (int other = 0; other < ranks(); ++other) expected[0][other] -= 1;
  EXPECT_TRUE(torch::allclose(model->weight, expected));
}

TEST(OptimizerGraphs, AdasumTrains) {
  auto model = make_model();
  DistributedOptimizer optimizer(
      world(), sgd(*model), model->named_parameters(),
      {.op = ReduceOp::adasum, .compression = Compression::fp16, .backward_passes_per_step = 2});
  const double before = whole_batch(0).loss(model).item<double>();
  for (int step = 0; step < 40; ++step) {
    optimizer.zero_grad();
    my_part(whole_batch(0)).part(0, 2).loss(model).backward();
    my_part(whole_batch(0)).part(1, 2).loss(model).backward();
    optimizer.step();
  }
  EXPECT_TRUE(replicas_are_equal(*model));
  EXPECT_LT(whole_batch(0).loss(model).item<double>(), before / 2);
  EXPECT_THROW(optimizer.synchronize(), UsageError);
}

TEST(JoinScope, AveragesOverTheRanksThatStillHaveData) {
  // Rank r has r + 1 steps, and the gradient r + 1 in each.
  auto model = test::here(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  torch::nn::init::zeros_(model->weight);
  DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 1.0),
                                 model->named_parameters());
  for (int epoch = 1; epoch <= 2; ++epoch) {
    const int last = join_scope(optimizer, *model, [&] {
      for (int step = 0; step <= rank(); ++step) {
        optimizer.zero_grad();
        (model->forward(test::ones({1, 1})).sum() * (rank() + 1)).backward();
        optimizer.step();
      }
    });
    EXPECT_EQ(last, ranks() - 1);
    double expected = 0;  // step s has ranks s to n - 1, whose mean gradient is (s + n + 1) / 2
    for (int step = 0; step < ranks(); ++step) expected -= (step + ranks() + 1) / 2.0;
    EXPECT_NEAR(model->weight.item<double>(), epoch * expected, 1e-5);
    EXPECT_TRUE(replicas_are_equal(*model));
  }
}

TEST(JoinScope, ARankMayHaveNothingAtAll) {
  auto model = make_model();
  DistributedOptimizer optimizer(world(), sgd(*model), model->named_parameters());
  for (int epoch = 0; epoch < 3; ++epoch) {
    const int with_data = epoch % ranks();  // also ranks that have never seen a gradient
    join_scope(optimizer, *model, [&] {
      for (int step = 0; step < 3 && rank() == with_data; ++step) {
        optimizer.zero_grad();
        whole_batch(step).loss(model).backward();
        optimizer.step();
      }
    });
    ASSERT_TRUE(replicas_are_equal(*model)) << epoch;
  }
  // All together again.
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    my_part(whole_batch(step)).loss(model).backward();
    optimizer.step();
  }
  EXPECT_TRUE(replicas_are_equal(*model));
}

TEST(JoinScope, FlushesWhatWaitsForMorePasses) {
  auto model = test::here(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  torch::nn::init::zeros_(model->weight);
  DistributedOptimizer optimizer(world(), std::make_unique<torch::optim::SGD>(model->parameters(), 1.0),
                                 model->named_parameters(), {.backward_passes_per_step = 4});
  join_scope(optimizer, *model, [&] { model->forward(test::ones({1, 1})).sum().backward(); });
  EXPECT_EQ(model->weight.item<float>(), -1);
}

TEST(JoinScope, RefusesShardedOptimizers) {
  auto model = make_model();
  DistributedOptimizer optimizer(world(), sgd(*model), model->named_parameters(), {.sharded = true});
  EXPECT_THAT([&] { join_scope(optimizer, *model, [] {}); }, ThrowsMessage<UsageError>(HasSubstr("leave sharded off")));
}

}  // namespace
}  // namespace fedrun
